"""The webhook's side of the queue when the database is slow: threads are free within 2 s."""

from __future__ import annotations

import select
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from selectors import EVENT_READ, EVENT_WRITE

import psycopg
import pytest

from bot.queue.inbox import Inbox, QueueUnavailable
from lab.doubles.processes import eventually
from memory.deadlines import DeadlineConnection, NoAnswer
from tests.support import postgres
from tests.support.patience import limit_s


@pytest.fixture
def inbox(database_url: str) -> Iterator[Inbox]:
    inbox = Inbox(database_url)
    inbox.ping()
    yield inbox
    inbox.close()


def enqueue(inbox: Inbox, key: str = "message:om_1") -> bool:
    return inbox.enqueue(key, {}, lock=None, received_ms=0)


def seconds_until_refused(inbox: Inbox) -> float:
    started = time.monotonic()
    with pytest.raises(QueueUnavailable):
        enqueue(inbox)
    return time.monotonic() - started


def works(inbox: Inbox) -> bool:
    try:
        inbox.ping()
    except QueueUnavailable:
        return False
    return True


def test_a_server_that_hangs_is_given_up_and_used_again_when_it_answers(
    inbox: Inbox, postgres_server: postgres.Server
) -> None:
    with postgres_server.frozen():
        assert [seconds_until_refused(inbox) < limit_s(2.2) for _ in range(3)] == [True] * 3
    eventually(lambda: works(inbox), what="the connection is made anew")
    enqueue(inbox)
    assert enqueue(inbox) is False


def test_an_event_is_accepted_though_the_server_has_ended_every_connection(
    inbox: Inbox, database_url: str
) -> None:
    for n in range(3):
        _cut(database_url)
        assert enqueue(inbox, f"message:om_{n}") is True


def test_an_event_is_accepted_though_its_connection_breaks_while_it_is_stored(
    inbox: Inbox, database_url: str
) -> None:
    with ThreadPoolExecutor(1) as threads, psycopg.connect(database_url) as other:
        other.execute("lock table feishu_bot.inbox in access exclusive mode")
        call = threads.submit(enqueue, inbox)
        waiting = "select pid from pg_locks where not granted"
        with psycopg.connect(database_url, autocommit=True) as looking:
            found = eventually(lambda: looking.execute(waiting).fetchone(), what="it waits")
            looking.execute("select pg_terminate_backend(%s, 5000)", found)
        other.rollback()

        assert call.result() is True
    assert enqueue(inbox) is False


def test_after_a_failover_events_are_accepted_over_new_connections(
    inbox: Inbox, database_url: str
) -> None:
    with postgres.standby(database_url):
        with pytest.raises(QueueUnavailable, match="ReadOnly"):
            enqueue(inbox)
        assert not works(inbox)
    assert enqueue(inbox) is True
    assert works(inbox)


def _cut(database_url: str) -> None:
    """Ends every other connection to the database."""
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )


def test_a_statement_that_waits_for_a_lock_is_ended_by_the_server_and_the_connection_stays(
    inbox: Inbox, database_url: str
) -> None:
    with psycopg.connect(database_url) as other:
        other.execute("lock table feishu_bot.inbox in access exclusive mode")
        assert 1 < seconds_until_refused(inbox) < limit_s(2.2)
        waiting = "select count(*) from pg_locks where not granted"
        with psycopg.connect(database_url) as looking:
            assert looking.execute(waiting).fetchone() == (0,)
    assert enqueue(inbox) is True


@pytest.mark.parametrize(
    "payload",
    [
        {"content": '“你好” 😀 \\ " \u2028'},
        {"number": 2**70, "small": 1.5, "none": None, "yes": True, "list": [[]]},
    ],
)
def test_an_event_is_kept_as_it_came(
    inbox: Inbox, database_url: str, payload: dict[str, object]
) -> None:
    assert inbox.enqueue("message:om_1", payload, lock="lock", received_ms=7)
    with psycopg.connect(database_url) as looking:
        row = looking.execute("select args, lock from feishu_bot.jobs").fetchone()
    assert row == ({"payload": payload, "received_ms": 7}, "lock")


REFUSAL = """
create function feishu_bot.refuse() returns trigger language plpgsql as $$
begin
  if new.key = 'message:om_3' then
    raise exception 'refused' using errcode = 'data_exception';
  end if;
  return new;
end $$;
create trigger refuse before insert on feishu_bot.inbox
  for each row execute function feishu_bot.refuse();
"""


def test_events_that_arrive_together_are_stored_together_and_one_that_is_refused_keeps_none_out(
    inbox: Inbox, database_url: str
) -> None:
    def enqueue_it(n: int) -> bool:
        return inbox.enqueue(f"message:om_{n}", {"n": n}, lock=f"lock {n}", received_ms=0)

    waiting = "select count(*) > 1 from pg_locks where not granted"
    with ThreadPoolExecutor(8) as threads, psycopg.connect(database_url) as other:
        other.execute(REFUSAL)
        other.commit()
        other.execute("lock table feishu_bot.inbox in access exclusive mode")
        calls = [threads.submit(enqueue_it, n) for n in range(8)]
        with psycopg.connect(database_url) as looking:
            eventually(lambda: looking.execute(waiting).fetchone() == (True,), what="they wait")
        other.rollback()
        refused = [n for n, call in enumerate(calls) if call.exception()]

    assert refused == [3]
    with psycopg.connect(database_url) as connection:
        stored = connection.execute("select key from feishu_bot.inbox order by key").fetchall()
        jobs = connection.execute("select count(*) from feishu_bot.jobs").fetchone()
    assert stored == [(f"message:om_{n}",) for n in range(8) if n != 3]
    assert jobs == (7,)


def test_two_deliveries_of_one_event_that_are_stored_together_are_one(
    inbox: Inbox, database_url: str
) -> None:
    with ThreadPoolExecutor(8) as threads, psycopg.connect(database_url) as other:
        other.execute("lock table feishu_bot.inbox in access exclusive mode")
        calls = [threads.submit(enqueue, inbox) for _ in range(8)]
        with psycopg.connect(database_url) as looking:
            waiting = "select count(*) > 1 from pg_locks where not granted"
            eventually(lambda: looking.execute(waiting).fetchone() == (True,), what="they wait")
        other.rollback()

    assert sorted(call.result() for call in calls) == [False] * 7 + [True]


def test_a_loop_that_stores_events_itself_learns_which_of_them_are_new(inbox: Inbox) -> None:
    enqueue(inbox, "message:om_1")
    events = [inbox.arrival(f"message:om_{n}", {}, 0, None, None) for n in (1, 2)]
    storing = inbox.storing(events)
    assert storing is not None
    while wanted := storing.step():
        reads, writes = (
            [storing.socket] if wanted & one else [] for one in (EVENT_READ, EVENT_WRITE)
        )
        select.select(reads, writes, [], 10)
    storing.end()

    assert storing.fresh == [False, True]


def test_a_connection_that_gets_no_answer_is_closed(
    database_url: str, postgres_server: postgres.Server
) -> None:
    with DeadlineConnection.connect(database_url, autocommit=True) as connection:
        with postgres_server.frozen():
            started = time.monotonic()
            with pytest.raises(NoAnswer), connection.until_then(started + 0.5):
                connection.execute("select 1")
        assert time.monotonic() - started < limit_s(2)
        assert connection.closed


def test_a_press_in_the_menu_that_waits_is_forgotten_with_the_person(
    inbox: Inbox, database_url: str
) -> None:
    for number, person in enumerate(("ou_alice", "ou_bob")):
        event = {"operator": {"operator_id": {"open_id": person}}, "event_key": "help"}
        inbox.enqueue(f"menu:{number}", {"event": event}, lock=None, received_ms=0)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("select feishu_bot.forget_in_queue('ou_alice', null, null)")
        left = connection.execute("select args::text from feishu_bot.jobs").fetchall()

    assert ["ou_bob" in one for (one,) in left] == [True]
