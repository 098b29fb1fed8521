"""The functions of the queue, called as several workers call them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

HOUR_AGO = "update workers set last_heartbeat = now() - interval '2 hours' where id = %s"


@dataclass
class Queue:
    """The queue with two workers that have no session: they take their jobs themselves."""

    connection: psycopg.Connection[Any]

    def __post_init__(self) -> None:
        self.mine, self.other = (self.call("begin_work", 0, False) for _ in range(2))

    def call(self, function: str, *arguments: object) -> Any:
        places = ", ".join(["%s"] * len(arguments))
        return self.value(f"select {function}({places})", *arguments)

    def value(self, query: str, *arguments: object) -> Any:
        row = self.connection.execute(query.encode(), arguments).fetchone()
        return row and row[0]

    def add(self, lock: str | None = None, topic_lock: str | None = None, **args: object) -> int:
        key = str(self.value("select count(*) from inbox"))
        job = self.call("enqueue", key, "feishu.event", lock, Jsonb(args), topic_lock)
        return int(job)

    def take(self, most: int = 1) -> list[int]:
        """What this worker is given."""
        return [job["id"] for job in self.call("take_jobs", self.mine, most)]

    def state(self, job: int) -> tuple[str, int | None] | None:
        query = "select status, worker_id from jobs where id = %s"
        return self.connection.execute(query.encode(), [job]).fetchone()

    def args(self, job: int) -> dict[str, Any]:
        return dict(self.value("select args from jobs where id = %s", job))


@pytest.fixture
def queue(database_url: str) -> Iterator[Queue]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("set search_path = feishu_bot")
        yield Queue(connection)


def test_a_worker_neither_ends_nor_puts_back_the_job_of_another(queue: Queue) -> None:
    job = queue.add()
    assert queue.take() == [job]

    queue.call("end_and_take", job, queue.other)
    put_back = queue.call("retry_job", job, queue.other, 0.0, False, "{}")

    assert not put_back
    assert queue.state(job) == ("running", queue.mine)


def test_a_lock_that_is_held_keeps_no_other_job_from_being_taken(queue: Queue) -> None:
    held, behind, free = queue.add("thread"), queue.add("thread"), queue.add("elsewhere")
    assert queue.take() == [held]

    assert queue.take(5) == [free]
    assert queue.state(behind) == ("waiting", None)


def test_a_job_stays_while_nothing_is_stored_of_its_silence(queue: Queue) -> None:
    job = queue.add()
    queue.take()

    assert queue.call("end_if_silent", job, queue.mine, "om_said") is None
    assert queue.state(job) == ("running", queue.mine)


@pytest.mark.parametrize("noted", [{}, {"maybe_sent_ms": 5}])
def test_what_a_worker_died_with_may_have_been_sent_since_it_was_last_seen(
    queue: Queue, noted: dict[str, Any]
) -> None:
    """Or since an earlier attempt may have sent it."""
    job = queue.add(received_ms=1, **noted)
    queue.take()
    seen = "select (extract(epoch from last_heartbeat) * 1000)::bigint from workers where id = %s"

    queue.call("hand_back", queue.mine, None)

    last_seen_ms = queue.value(seen, queue.mine)
    assert queue.args(job)["maybe_sent_ms"] == noted.get("maybe_sent_ms", last_seen_ms)


def test_a_job_that_arrived_after_all_is_not_handed_back(queue: Queue) -> None:
    job = queue.add()
    queue.take()

    arrived = queue.call("look_round", queue.mine, [job], 0, [job])
    assert (arrived["handed_back"], queue.state(job)) == ([], ("running", queue.mine))

    missing = queue.call("look_round", queue.mine, [], 0, [job])
    assert (missing["handed_back"], queue.state(job)) == ([job], ("waiting", None))


def test_a_worker_is_remembered_as_long_as_it_has_jobs(queue: Queue) -> None:
    queue.add()
    queue.take()
    for worker in (queue.mine, queue.other):
        queue.connection.execute(HOUR_AGO.encode(), [worker])

    queue.call("prune_inbox", 24)

    assert queue.value("select array_agg(id) from workers") == [queue.mine]


def test_what_was_accepted_is_remembered_for_a_day_at_least(queue: Queue) -> None:
    for _ in range(2):
        queue.add()
    queue.connection.execute(
        "update inbox set received_at = now() - make_interval(hours => 20 + 5 * key::integer)"
    )

    assert queue.call("prune_inbox", 1) == 1
    assert queue.value("select array_agg(key) from inbox") == ["0"]


@pytest.mark.parametrize("has_topics", [True, False])
def test_in_a_group_of_topics_each_topic_has_a_lock_of_its_own(
    queue: Queue, has_topics: bool
) -> None:
    query = "insert into public.chats (tenant_key, chat_id, topics) values ('t', 'oc', %s)"
    queue.connection.execute(query.encode(), [has_topics])

    job = queue.add("chat:oc", "topic:om_root")

    lock = queue.value("select lock from jobs where id = %s", job)
    assert lock == ("topic:om_root" if has_topics else "chat:oc")


def test_workers_hear_of_a_job_that_waits_for_one_of_them(queue: Queue) -> None:
    queue.connection.execute("listen feishu_bot_jobs")

    queue.add()

    assert [one.channel for one in queue.connection.notifies(timeout=5, stop_after=1)] == [
        "feishu_bot_jobs"
    ]
