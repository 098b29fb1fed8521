"""An accepted event is given to a worker at once: once, in order, and to one that lives."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

import psycopg
import pytest

from bot.queue.consumer import Lease
from bot.queue.inbox import Inbox
from bot.queue.jobs import Job
from bot.queue.table import Hearing, Presence
from tests.support.queue import (
    enqueue,
    fetch,
    first_look,
    idle_presence,
    job_table,
    rows,
    text_of,
    until,
    working,
)

pytestmark = pytest.mark.anyio

_OWNERS = "status, worker_id"


async def test_an_event_is_in_a_workers_hands_as_soon_as_it_is_accepted(database_url: str) -> None:
    heard: list[Job] = []
    arrived = asyncio.Event()

    def handed(job: Job) -> None:
        heard.append(job)
        arrived.set()

    presence = Presence(database_url, Hearing(lambda: None, handed), places=2)
    await presence.begin()
    await enqueue(database_url, "“引号” \\ \n ' \" $1", lock="thread")
    async with asyncio.timeout(60):
        await arrived.wait()

    [job] = heard
    assert (job.lock, job.attempt, job.task) == ("thread", 1, "feishu.event")
    assert job.args["payload"]["text"] == "“引号” \\ \n ' \" $1"
    assert await rows(database_url, _OWNERS) == [("running", presence.worker)]
    await presence.end()


async def test_a_worker_hears_at_once_which_turn_is_to_stop(database_url: str) -> None:
    stops: asyncio.Queue[str] = asyncio.Queue()
    hearing = Hearing(lambda: None, lambda _: None, stops.put_nowait)
    presence, inbox = Presence(database_url, hearing, places=0), Inbox(database_url)
    await presence.begin()
    await asyncio.to_thread(inbox.stop_turn, "om_1")
    async with asyncio.timeout(20):
        assert await stops.get() == "om_1"
    await presence.end()
    inbox.close()


async def test_what_was_handed_over_runs_and_ends_without_being_taken(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    looked = first_look(monkeypatch)

    async def handle(lease: Lease) -> None:
        seen.append(text_of(lease))

    async with working(database_url, handle) as consumer:
        await looked.wait()
        monkeypatch.setattr(consumer._table, "take", None)
        await enqueue(database_url, "a", "b", "c")
        await until(rows, database_url, [])

    assert sorted(seen) == ["a", "b", "c"]


async def test_what_comes_behind_another_of_its_lock_waits_for_it(database_url: str) -> None:
    seen: list[str] = []
    begun, over = asyncio.Event(), asyncio.Event()

    async def handle(lease: Lease) -> None:
        seen.append(text_of(lease))
        begun.set()
        await over.wait()

    async with working(database_url, handle):
        await enqueue(database_url, "first", lock="thread")
        await begun.wait()
        await enqueue(database_url, "second", "third", lock="thread")
        assert await rows(database_url, "status") == ["running", "waiting", "waiting"]
        over.set()
        await until(rows, database_url, [])

    assert seen == ["first", "second", "third"]


async def test_who_ends_a_job_has_the_next_of_its_lock_without_taking_it(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    begun, over = asyncio.Event(), asyncio.Event()
    looked = first_look(monkeypatch)

    async def handle(lease: Lease) -> None:
        seen.append(text_of(lease))
        begun.set()
        await over.wait()

    async with working(database_url, handle) as consumer:
        await looked.wait()
        await enqueue(database_url, "first", lock="thread")
        await begun.wait()
        monkeypatch.setattr(consumer._table, "take", None)
        await enqueue(database_url, "second", "third", lock="thread")
        over.set()
        await until(rows, database_url, [])

    assert seen == ["first", "second", "third"]


async def test_who_ends_a_job_waits_for_the_next_that_is_just_being_accepted(
    database_url: str,
) -> None:
    """Neither could see the other otherwise, and the next would stand until somebody looks."""
    presence = idle_presence(database_url, places=1)
    await presence.begin()
    await enqueue(database_url, "first", lock="thread")
    accept = "select feishu_bot.enqueue('k', 'feishu.event', 'thread', '{}')"
    end = f"select feishu_bot.end_and_take(1, {presence.worker})"
    with psycopg.connect(database_url) as accepting:
        accepting.execute(accept.encode())
        ending = asyncio.create_task(asyncio.to_thread(fetch, database_url, end))
        await asyncio.sleep(0.3)
        assert not ending.done()
        accepting.commit()
        [following] = await ending

    assert (following["id"], following["lock"]) == (2, "thread")
    assert await rows(database_url, "id, status") == [(2, "running")]
    await presence.end()


async def test_the_next_of_a_lock_is_not_taken_before_its_time(database_url: str) -> None:
    presence = idle_presence(database_url, places=1)
    await presence.begin()
    await enqueue(database_url, "first", "second", "third", lock="thread")
    later = """set search_path = feishu_bot;
               update jobs set scheduled_at = now() + interval '1 h' where id = 2"""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(later.encode())

    end = f"select feishu_bot.end_and_take(1, {presence.worker})"
    assert await asyncio.to_thread(fetch, database_url, end) == [None]

    assert await rows(database_url, "id, status") == [(2, "waiting"), (3, "waiting")]
    await presence.end()


async def test_nothing_overtakes_what_waits_of_its_lock(database_url: str) -> None:
    """Also when that waits without a worker, as after a failure."""
    await enqueue(database_url, "waits", lock="thread")
    presence = idle_presence(database_url, places=5)
    await presence.begin()

    await enqueue(database_url, "comes later", lock="thread")

    assert await rows(database_url, "status") == ["waiting", "waiting"]
    await presence.end()


async def test_an_event_longer_than_a_notification_is_taken_from_the_queue(
    database_url: str,
) -> None:
    seen: list[int] = []

    async def handle(lease: Lease) -> None:
        seen.append(len(text_of(lease)))

    async with working(database_url, handle):
        for length in (7700, 7800, 7900, 30_000):
            await enqueue(database_url, "x" * length)
        await enqueue(database_url, "记" * 2600)
        await until(rows, database_url, [])

    assert sorted(seen) == [2600, 7700, 7800, 7900, 30_000]


async def test_events_are_spread_by_free_places_and_wait_when_there_is_none(
    database_url: str,
) -> None:
    small, large = idle_presence(database_url, places=2), idle_presence(database_url, places=6)
    await small.begin()
    await large.begin()

    await enqueue(database_url, *(f"m{n}" for n in range(4)))
    assert Counter(await rows(database_url, "worker_id")) == {small.worker: 1, large.worker: 3}
    await enqueue(database_url, *(f"n{n}" for n in range(6)))

    assert Counter(await rows(database_url, _OWNERS)) == {
        ("running", small.worker): 2,
        ("running", large.worker): 6,
        ("waiting", None): 2,
    }
    await small.end()
    await large.end()


async def test_a_worker_without_a_session_or_without_places_is_handed_nothing(
    database_url: str,
) -> None:
    """Behind a transaction pooler it would not hear; one of an earlier version would not listen."""
    await asyncio.to_thread(fetch, database_url, "select feishu_bot.begin_work(0, false, 9, 'x')")
    earlier = idle_presence(database_url, places=0)
    await earlier.begin()

    await enqueue(database_url, "m")

    assert await rows(database_url, _OWNERS) == [("waiting", None)]
    await earlier.end()


async def test_a_worker_that_is_gone_or_silent_is_handed_nothing(database_url: str) -> None:
    gone, silent = idle_presence(database_url, places=5), idle_presence(database_url, places=5)
    await gone.begin()
    await silent.begin()
    await gone.end()
    age = f"""update feishu_bot.workers
              set last_heartbeat = now() - interval '20 s' where id = {silent.worker} returning 1"""
    await asyncio.to_thread(fetch, database_url, age)
    await until(_sessions, database_url, [1])

    await enqueue(database_url, "m")

    assert await rows(database_url, _OWNERS) == [("waiting", None)]
    await silent.end()


async def _sessions(url: str) -> list[int]:
    query = """select count(*) from pg_locks l join pg_database d on d.oid = l.database
               where l.classid = feishu_bot.worker_lock()::oid and d.datname = current_database()"""
    return await asyncio.to_thread(fetch, url, query)


async def test_what_a_worker_died_with_before_it_heard_of_it_is_done_by_another(
    database_url: str,
) -> None:
    attempts: list[int] = []

    async def handle(lease: Lease) -> None:
        attempts.append(lease.job.attempt)

    dying = idle_presence(database_url, places=5)
    await dying.begin()
    await enqueue(database_url, "m", lock="thread")
    assert await rows(database_url, _OWNERS) == [("running", dying.worker)]
    async with working(database_url, handle):
        await dying.end()
        await until(rows, database_url, [])

    assert attempts == [2]


async def test_a_job_that_never_arrived_is_handed_back_and_a_late_arrival_counts_for_nothing(
    database_url: str,
) -> None:
    attempts: list[int] = []
    begun, over = asyncio.Event(), asyncio.Event()
    late: list[Job] = []

    async def handle(lease: Lease) -> None:
        attempts.append(lease.job.attempt)
        begun.set()
        await over.wait()

    async with working(database_url, handle) as consumer:
        consumer._presence._hearing = Hearing(consumer._news.set, late.append)
        await enqueue(database_url, "m", lock="thread")
        await begun.wait()
        [job] = late
        consumer._start_handed(job)
        over.set()
        await until(rows, database_url, [])
        consumer._start_handed(job)
        await asyncio.sleep(0.05)

    assert attempts == [2]


async def test_a_job_that_is_still_on_its_way_is_not_handed_back(database_url: str) -> None:
    """A round looks just between the commit and the notification."""
    attempts: list[int] = []
    late: list[Job] = []

    async def handle(lease: Lease) -> None:
        attempts.append(lease.job.attempt)

    async with working(database_url, handle) as consumer:
        heard = consumer._presence._hearing
        consumer._presence._hearing = Hearing(heard.news, late.append)
        await enqueue(database_url, "m", lock="thread")
        await consumer._look()
        assert await rows(database_url) == ["running"]
        consumer._start_handed(late.pop())
        await until(rows, database_url, [])

    assert attempts == [1]


async def test_a_worker_on_its_way_out_is_handed_nothing_and_keeps_nothing(
    database_url: str,
) -> None:
    begun, over, stop = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def handle(_: Lease) -> None:
        begun.set()
        await over.wait()

    async with (
        working(database_url, handle, grace_s=5, stop=stop) as consumer,
        job_table(database_url) as table,
    ):
        await enqueue(database_url, "runs")
        await begun.wait()
        stop.set()
        await until(_places, database_url, [0])
        await enqueue(database_url, "comes too late")
        assert await _states(database_url) == ["running", "waiting"]
        [job] = await table.take(consumer._presence.worker, 1)
        consumer._start_handed(job)  # as if it had been handed over just before
        await until(_states, database_url, ["running", "waiting"])
        over.set()
        await until(_states, database_url, ["waiting"])


async def _places(url: str) -> list[int]:
    return await asyncio.to_thread(fetch, url, "select places from feishu_bot.workers")


async def _states(url: str) -> list[str]:
    return await rows(url, "status")


async def test_many_at_once_for_several_workers_are_done_once_and_in_order(
    database_url: str,
) -> None:
    """Threads that accept side by side, two small workers, conversations that are talked in at the
    same time: places run out, so some events are handed over and some are taken."""
    seen: dict[str, list[int]] = {}
    running: Counter[str] = Counter()

    async def handle(lease: Lease) -> None:
        conversation, number = text_of(lease).split()
        running[conversation] += 1
        assert running[conversation] == 1
        await asyncio.sleep(0.002)
        seen.setdefault(conversation, []).append(int(number))
        running[conversation] -= 1

    def talk(inbox: Inbox, conversation: str) -> None:
        for number in range(25):
            text = f"{conversation} {number}"
            for _ in range(2):  # Feishu pushes some events twice
                inbox.enqueue(text, {"text": text}, lock=conversation, received_ms=1)

    async with (
        working(database_url, handle, concurrency=3),
        working(database_url, handle, concurrency=2),
    ):
        inbox = Inbox(database_url)
        threads = [threading.Thread(target=talk, args=(inbox, f"c{n}")) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            await asyncio.to_thread(thread.join)
        await until(rows, database_url, [])
        await asyncio.to_thread(inbox.close)

    assert seen == {f"c{n}": list(range(25)) for n in range(8)}


async def test_the_channel_of_a_worker_is_known_to_nobody_else(database_url: str) -> None:
    first, second = idle_presence(database_url, places=1), idle_presence(database_url, places=1)
    await first.begin()
    await second.begin()
    query = "select channel from feishu_bot.workers"
    channels = await asyncio.to_thread(fetch, database_url, query)

    assert len(set(channels)) == 2
    assert all(len(channel) > 32 for channel in channels)
    for role in ("anon", "authenticated", "service_role"):
        allowed = f"select has_table_privilege('{role}', 'feishu_bot.workers', 'select')"
        assert await asyncio.to_thread(fetch, database_url, allowed) == [False]
    await first.end()
    await second.end()
