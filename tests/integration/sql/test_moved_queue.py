"""A queue that was Procrastinate's becomes ours with everything in it, and nobody has to stop."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

import psycopg
import pytest

from bot.queue.consumer import Lease
from bot.queue.operator_actions import QueueOperations, Reference
from memory import migrations
from tests.support import stored_database
from tests.support.postgres import Server
from tests.support.queue import fetch, rows, text_of, until, working

_JOBS = """
    set search_path = feishu_bot;
    delete from procrastinate_jobs;
    insert into procrastinate_workers (id, last_heartbeat) overriding system value
      values (71, '2026-01-01');
    insert into procrastinate_jobs
      (id, queue_name, task_name, priority, lock, queueing_lock, args, status, scheduled_at,
       attempts, worker_id)
    select j.id, 'feishu', 'feishu.event', j.priority, j.lock, j.queueing_lock,
           jsonb_build_object('payload', jsonb_build_object('text', j.id::text),
                              'received_ms', 1700000000000, 'failed_with', 'KeyError'),
           'todo', j.scheduled_at, j.attempts, j.worker_id
    from (values
      (901, 0, 'thread', null, null::timestamptz, 0, null),
      (902, -1, 'thread', null, null, 0, null),
      (903, -10, 'tending 1', 'tending x', null, 0, null),
      (904, 0, 'timer 1', null, '2099-01-01', 3, null),
      (905, 0, 'elsewhere', null, null, 1, 71),
      (906, 0, null, null, null, 0, null),
      (907, 0, 'thread', null, null, 1, null),
      (908, 0, 'thread', null, null, 0, null),
      (909, 0, 'thread', null, null, 0, null),
      (910, 0, 'thread', null, null, 0, null)
    ) j (id, priority, lock, queueing_lock, scheduled_at, attempts, worker_id);
    update procrastinate_jobs set status = 'doing' where id in (905, 906, 907);
    update procrastinate_jobs set status = 'failed' where id = 907;
    update procrastinate_jobs set status = 'succeeded' where id = 908;
    update procrastinate_jobs set status = 'cancelled' where id = 909;
    update procrastinate_jobs set status = 'aborted' where id = 910;
    select setval('procrastinate_jobs_id_seq', 999);
"""

_LEFT = """
    select 'table ' || relname from pg_class where relname ~ 'procrastinate|^session_workers'
    union all select 'function ' || proname from pg_proc where proname ~ 'procrastinate'
    union all select 'type ' || typname from pg_type where typname ~ 'procrastinate'
"""


@pytest.fixture
def before(postgres_server: Server) -> Iterator[str]:
    """The stored database of an earlier version, with jobs in every status."""
    with postgres_server.fresh_database() as url:
        stored_database.load(url)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_JOBS.encode())
        yield url


def test_jobs_go_over_as_they_are_and_nothing_is_left_behind(before: str) -> None:
    migrations.apply(before)

    columns = (
        "id, status, priority, lock, unique_key, scheduled_at::date::text, attempts, worker_id"
    )
    found = fetch(before, f"select {columns} from feishu_bot.jobs order by id")
    assert found == [
        (901, "waiting", 0, "thread", None, None, 0, None),
        (902, "waiting", -1, "thread", None, None, 0, None),
        (903, "waiting", -10, "tending 1", "tending x", None, 0, None),
        (904, "waiting", 0, "timer 1", None, "2099-01-01", 3, None),
        (905, "running", 0, "elsewhere", None, None, 1, 71),
        (906, "running", 0, None, None, None, 0, 0),
        (907, "failed", 0, "thread", None, None, 1, None),
    ]
    assert fetch(before, "select id from feishu_bot.workers where id = 71") == [71]
    assert fetch(before, _LEFT) == []


def test_what_operators_see_of_a_job_that_failed_goes_over(before: str) -> None:
    [failed_at] = fetch(
        before,
        "select at from feishu_bot.procrastinate_events where job_id = 907 and type = 'failed'",
    )
    migrations.apply(before)

    queue = QueueOperations(before)
    [job] = queue.failed(Reference("J", "907"))
    assert (job.reference, job.reason, job.attempts) == (Reference("J", "907"), "KeyError", 1)
    assert fetch(before, f"select '{job.failed_at}'::timestamptz") == [failed_at]
    assert [event["type"] for event in queue.events(907)] == ["queued", "failed"]


@pytest.mark.anyio
async def test_workers_do_what_waits_and_take_over_what_nobody_runs(before: str) -> None:
    migrations.apply(before)
    seen: list[tuple[str, int]] = []

    async def handle(lease: Lease) -> None:
        seen.append((text_of(lease), lease.job.attempt))

    async with working(before, handle, within_s=30):
        later = ["waiting", "failed"]  # 904 has its time, and 907 an operator
        await until(rows, before, later)

    # 905 is known by its heartbeats alone, which stopped long ago
    assert sorted(seen) == [("901", 1), ("902", 1), ("903", 1), ("905", 3), ("906", 2)]
    assert seen.index(("901", 1)) < seen.index(("902", 1))


def test_a_number_that_a_card_may_name_is_not_given_again(before: str) -> None:
    migrations.apply(before)

    job = "select feishu_bot.enqueue('message:new', 'feishu.event', 'new', '{}')"
    assert fetch(before, job) == [1000]


# The statements of the version before, as its processes have them prepared.
_EVENT = "select feishu_bot.enqueue_event(%s, 'feishu', 'feishu.event', %s, %s::jsonb)"
_CLAIM = "select feishu_bot.claim_jobs(%s, 'feishu', 5)"
_ROUND = "select feishu_bot.work_round(%s, 'feishu', %s, 0, '{}')"
_END = "select feishu_bot.end_and_take(%s, %s)"
_TENDING = "select feishu_bot.defer_tending('feishu', 'feishu.tending', -10, 2, 'who', '{}')"
_TIMER = "select feishu_bot.defer_timer('feishu', 'feishu.timer', 'when', '{}')"


def test_processes_of_the_version_before_work_on_until_they_are_restarted(
    connection: psycopg.Connection, database_url: str
) -> None:
    session = psycopg.connect(database_url, autocommit=True)
    worker = _value(session, "select feishu_bot.begin_work(0, true, 5, 'worker_x')")
    first = _value(connection, _EVENT, "message:1", "thread", "{}")
    assert _value(connection, _EVENT, "message:1", "thread", "{}") is None
    second = _value(connection, _EVENT, "message:2", "thread", "{}")
    for _ in range(2):
        _value(connection, _TENDING), _value(connection, _TIMER)

    claimed = _value(connection, _CLAIM, worker)
    assert [job["task"] for job in claimed] == ["feishu.timer", "feishu.tending"]
    assert _value(connection, _END, first, worker) == {
        "id": second, "task": "feishu.event", "args": {}, "lock": "thread", "attempt": 1,
    }  # fmt: skip
    found = _value(connection, _ROUND, worker, [second])
    assert (found["known"], found["jobs"], len(found["missing"])) == (True, [], 2)
    again = "select feishu_bot.retry_job(%s, %s, 0, false, '{}')"
    assert _value(connection, again, second, worker)
    assert [job["attempt"] for job in _value(connection, _CLAIM, worker)] == [2]
    fail = "select feishu_bot.fail_job(%s, %s, 'KeyError', '{}')"
    assert _value(connection, fail, second, worker)
    session.close()


def _value(connection: psycopg.Connection, query: str, *params: object) -> Any:
    """Asked until it is answered, as those processes do."""
    while True:
        with suppress(psycopg.errors.UndefinedTable):  # it has just gone
            [found] = connection.execute(query.encode(), params).fetchone() or ()
            return found


class FormerProcesses:
    """Threads with the functions of the version before, for a minute at most: some accept events,
    one runs them."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._enough, self._all_accepted = threading.Event(), threading.Event()
        self._until = time.monotonic() + 60
        self.accepted: list[str] = []
        self.ran: list[str] = []

    def accept(self, sender: int) -> None:
        """Events of one conversation, one after the other, each pushed until it is taken."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            for number in count():
                if self._enough.is_set() or self._is_late():
                    return
                key = f"{sender} {number}"
                _value(connection, _EVENT, key, f"lock {sender}", json.dumps({"key": key}))
                self.accepted.append(key)

    def run(self) -> None:
        """Runs what waits, until all is over."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            worker = _value(connection, "select feishu_bot.begin_work(0, false)")
            while not self._is_late():
                if self._all_accepted.is_set() and len(self.ran) >= len(self.accepted):
                    return
                _value(connection, _ROUND, worker, [])
                for job in _value(connection, _CLAIM, worker):
                    while job:
                        self.ran.append(job["args"]["key"])
                        job = _value(connection, _END, job["id"], worker)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Until the body is over and what was accepted has run."""
        with ThreadPoolExecutor() as threads:
            running = threads.submit(self.run)
            accepting = [threads.submit(self.accept, sender) for sender in range(4)]
            try:
                yield
            finally:
                self._enough.set()
                wait(accepting)
                self._all_accepted.set()
        for one in (running, *accepting):
            one.result()

    def until_ran(self, events: int) -> None:
        """Returns when so many more have run."""
        wanted = len(self.ran) + events
        while len(self.ran) < wanted and not self._is_late():
            time.sleep(0.01)

    def _is_late(self) -> bool:
        return time.monotonic() > self._until


def test_what_they_do_meanwhile_is_neither_lost_nor_doubled_nor_out_of_order(
    postgres_server: Server,
) -> None:
    with postgres_server.fresh_database() as url:
        stored_database.load(url)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("set search_path = feishu_bot; delete from procrastinate_jobs")
        processes = FormerProcesses(url)
        with processes.at_work():
            processes.until_ran(50)
            migrations.apply(url)
            processes.until_ran(50)

    for sender in range(4):
        mine = f"{sender} "
        accepted = [key for key in processes.accepted if key.startswith(mine)]
        assert [key for key in processes.ran if key.startswith(mine)] == accepted
