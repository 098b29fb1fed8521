"""A worker and its jobs: taken in order, ended for certain, taken over when the worker is gone."""

from __future__ import annotations

import asyncio
import itertools
import time
from itertools import pairwise
from typing import NoReturn

import psycopg
import pytest
from structlog.testing import capture_logs

from bot.process.concurrency import chat_of_job, room_to_begin, without_slot
from bot.queue import consumer as consuming
from bot.queue.consumer import ROUND_S, Consumer, Handlers, Lease
from bot.queue.inbox import QueueUnavailable
from bot.queue.jobs import Later, RunAgain
from tests.support import postgres
from tests.support.patience import limit_s
from tests.support.queue import (
    enqueue,
    fetch,
    idle_presence,
    job_table,
    rows,
    text_of,
    until,
    working,
)

pytestmark = pytest.mark.anyio

CUT_SESSIONS = """
    select pg_terminate_backend(l.pid) from pg_locks l
    join pg_database d on d.oid = l.database and d.datname = current_database()
    where l.locktype = 'advisory' and l.classid = feishu_bot.worker_lock()::oid and l.granted
"""


async def test_jobs_of_one_lock_run_in_order_and_others_beside_them(database_url: str) -> None:
    seen: list[str] = []
    together, done = asyncio.Barrier(3), asyncio.Event()

    async def handle(lease: Lease) -> None:
        if text_of(lease).startswith("free"):
            await together.wait()
        seen.append(text_of(lease))
        if len(seen) == 7:
            done.set()

    await enqueue(database_url, "a", "b", "c", "d", lock="thread")
    await enqueue(database_url, "free 1", "free 2", "free 3")
    async with working(database_url, handle):
        await done.wait()
        await until(rows, database_url, [])

    assert [text for text in seen if not text.startswith("free")] == ["a", "b", "c", "d"]


async def test_the_threads_of_a_chat_have_one_share_and_those_of_comments_one_each(
    database_url: str,
) -> None:
    shares: list[str] = []

    async def handle(_: Lease) -> None:
        shares.append(chat_of_job())

    for lock in ("feishu:oc_1:om_1", "feishu:oc_1:om_2", "feishu:doc:x:1", "feishu:doc:x:2", None):
        await enqueue(database_url, f"to {lock}", lock=lock)
    async with working(database_url, handle):
        await until(rows, database_url, [])

    assert sorted(shares) == ["", "feishu:doc:x:1", "feishu:doc:x:2", *["feishu:oc_1"] * 2]


async def test_many_are_taken_at_once_and_no_more_work_than_there_are_places(
    database_url: str,
) -> None:
    running, most, count, done = 0, 0, 0, asyncio.Event()

    async def handle(_: Lease) -> None:
        nonlocal running, most, count
        await room_to_begin()
        running, most = running + 1, max(most, running + 1)
        await asyncio.sleep(0.01)
        running, count = running - 1, count + 1
        if count == 80:
            done.set()

    await enqueue(database_url, *(f"m{n}" for n in range(40)))
    async with working(database_url, handle, concurrency=7):
        await enqueue(database_url, *(f"n{n}" for n in range(40)))
        await done.wait()

    assert most == 7


async def test_jobs_that_wait_for_somebody_keep_none_from_being_done_up_to_all_in_hand(
    database_url: str,
) -> None:
    waits, answered, full = 0, asyncio.Event(), asyncio.Event()
    heard: list[str] = []

    async def handle(lease: Lease) -> None:
        nonlocal waits
        if not text_of(lease).startswith("asks"):
            heard.append(text_of(lease))
            return
        await room_to_begin()
        with without_slot():
            waits += 1
            if waits == 50:
                full.set()
            await answered.wait()

    await enqueue(database_url, *(f"asks {n}" for n in range(30)))
    async with working(database_url, handle, concurrency=2, in_hand=50):
        await enqueue(database_url, *(f"asks too {n}" for n in range(19)))
        await until(rows, database_url, ["running"] * 49)
        await enqueue(database_url, "a line", "another")
        await until(rows, database_url, ["running"] * 49)
        assert heard == ["a line", "another"]
        await enqueue(database_url, *(f"asks in the end {n}" for n in range(5)))
        await full.wait()
        assert (await rows(database_url)).count("waiting") == 4
        answered.set()
        await until(rows, database_url, [])

    assert waits == 54


async def test_a_worker_that_stops_hands_back_hundreds_that_wait_within_its_time(
    database_url: str,
) -> None:
    waits, full, stop = 0, asyncio.Event(), asyncio.Event()

    async def handle(_: Lease) -> None:
        nonlocal waits
        await room_to_begin()
        with without_slot():
            waits += 1
            if waits == 300:
                full.set()
            await asyncio.Event().wait()

    await enqueue(database_url, *(f"m{n}" for n in range(300)))
    async with working(database_url, handle, concurrency=4, in_hand=400, stop=stop):
        await full.wait()
        stop.set()
        await until(rows, database_url, ["waiting"] * 300)


async def test_a_failure_that_may_pass_is_tried_again_and_counted(database_url: str) -> None:
    attempts: list[int] = []
    done = asyncio.Event()

    async def handle(lease: Lease) -> None:
        attempts.append(lease.job.attempt)
        if len(attempts) == 1:
            raise Later("away")
        done.set()

    await enqueue(database_url, "m", lock="thread")
    async with working(database_url, handle):
        await done.wait()
        await until(rows, database_url, [])

    assert attempts == [1, 2]


async def test_a_worker_that_comes_back_while_a_job_is_handed_out_keeps_its_jobs(
    database_url: str,
) -> None:
    presence = idle_presence(database_url)
    assert await presence.begin()
    worker = presence.worker
    asks = f"select pg_try_advisory_xact_lock_shared(feishu_bot.worker_lock(), {worker})"
    async with await psycopg.AsyncConnection.connect(database_url) as handing_out:
        assert await asyncio.to_thread(fetch, database_url, CUT_SESSIONS) == [True]
        await presence.lost.wait()
        for _ in range(200):
            if await (await handing_out.execute(asks.encode())).fetchone() == (True,):
                break
            await handing_out.rollback()
            await asyncio.sleep(0.01)
        coming_back = asyncio.create_task(presence.begin())
        await asyncio.sleep(0.2)
        await handing_out.rollback()

        assert await coming_back
    assert presence.worker == worker
    await presence.end()


async def cut_off(consumer: Consumer, url: str) -> NoReturn:
    """Ends the worker's connection, and fails as a job does that notices."""
    async with consumer._table._pool.connection() as connection:
        pid = await connection.ask(b"select pg_backend_pid()", ())
        await asyncio.to_thread(fetch, url, f"select pg_terminate_backend({pid}, 5000)")
    raise QueueUnavailable("cut off")


async def test_a_job_whose_database_goes_away_runs_again_at_once_and_counts_no_attempt(
    database_url: str,
) -> None:
    attempts: list[int] = []
    times: list[float] = []

    async def handle(lease: Lease) -> None:
        attempts.append(lease.job.attempt)
        times.append(time.monotonic())
        if len(attempts) < 4:
            await cut_off(consumer, database_url)

    async with working(database_url, handle) as consumer:
        await enqueue(database_url, "m", "behind", lock="thread")
        await until(rows, database_url, [])

    assert len(attempts) == 5
    gaps = [after - before for before, after in pairwise(times)]
    assert max(gaps) < limit_s(1.5)
    # a worker that a busy machine keeps away for longer is taken for dead
    counted = [after - before for before, after in pairwise(attempts[:-1])]
    assert not [1 for more, gap in zip(counted, gaps, strict=False) if more and gap < 1.5]


async def test_a_job_that_has_ended_is_not_run_again_when_the_database_goes_away(
    database_url: str,
) -> None:
    runs = 0

    async def handle(lease: Lease) -> None:
        nonlocal runs
        runs += 1
        lease.note_end(await consumer._table.end(lease.job, lease.worker))
        await cut_off(consumer, database_url)

    async def is_idle(_: str) -> bool:
        return runs > 0 and not consumer._running

    async with working(database_url, handle) as consumer:
        await enqueue(database_url, "m")
        await until(is_idle, database_url, True)

    assert runs == 1


async def test_a_job_that_may_have_sent_something_is_put_back_with_that_note_first(
    database_url: str,
) -> None:
    notes: list[tuple[int, bool]] = []
    times: list[float] = []

    async def handle(lease: Lease) -> None:
        times.append(time.monotonic())
        notes.append((lease.job.attempt, lease.job.maybe_sent_ms > 0))
        if len(notes) == 1:
            lease.unsure = True
            await cut_off(consumer, database_url)

    async with working(database_url, handle) as consumer:
        await enqueue(database_url, "m")
        await until(rows, database_url, [])

    assert notes == [(1, False), (2, True)]
    assert times[1] - times[0] < limit_s(1.5)


async def test_the_note_says_when_something_may_first_have_been_sent(database_url: str) -> None:
    """What is looked for in a chat may stand there since then."""
    notes: list[int] = []
    seconds = itertools.count(1_800_000_000)

    async def handle(lease: Lease) -> None:
        notes.append(lease.job.maybe_sent_ms)
        if len(notes) < 3:
            lease.unsure = True
            await cut_off(consumer, database_url)

    async with working(database_url, handle, clock=lambda: next(seconds)) as consumer:
        await enqueue(database_url, "m")
        await until(rows, database_url, [])

    assert notes[0] == 0
    assert notes[1] == notes[2] > 0


async def test_a_job_that_always_takes_the_database_down_is_put_back_in_the_end(
    database_url: str,
) -> None:
    runs = 0

    async def handle(_: Lease) -> None:
        nonlocal runs
        runs += 1
        try:
            await cut_off(consumer, database_url)
        except QueueUnavailable as exc:
            raise Later("away") from exc

    async def waits_after_all_runs(url: str) -> bool:
        return await rows(url) == ["waiting"] and runs >= 7  # it waits before the first, too

    async with working(database_url, handle) as consumer:
        await enqueue(database_url, "m")
        await until(waits_after_all_runs, database_url, wanted=True)
    assert runs < 14, "it is put back after the seventh; it may have run some times since"


async def test_who_waits_behind_lets_the_others_of_its_lock_go_first(database_url: str) -> None:
    seen: list[str] = []
    done = asyncio.Event()

    async def handle(lease: Lease) -> None:
        seen.append(text_of(lease))
        if seen == ["click"]:
            raise Later("the memory is away", behind=True)
        if len(seen) == 3:
            done.set()

    await enqueue(database_url, "click", "question", lock="thread")
    async with working(database_url, handle):
        await done.wait()

    assert seen == ["click", "question", "click"]


async def test_a_fault_that_stays_is_told_of_kept_and_holds_up_nobody(database_url: str) -> None:
    given_up: list[tuple[str, str]] = []
    seen: list[str] = []
    done = asyncio.Event()

    async def handle(lease: Lease) -> None:
        seen.append(text_of(lease))
        if text_of(lease) == "poison":
            raise KeyError("somebody's words")
        done.set()

    async def give_up(lease: Lease, reason: str) -> bool:
        given_up.append((text_of(lease), reason))
        return True

    await enqueue(database_url, "poison", "next", lock="thread")
    async with working(database_url, handle, give_up=give_up):
        await done.wait()
        await until(rows, database_url, ["failed"])

    assert seen == ["poison", "poison", "next"]
    assert given_up == [("poison", "KeyError")]
    [args] = await rows(database_url, "args::text")
    assert "KeyError" in args
    assert '"excused": true' in args
    assert "somebody" not in args


async def test_what_is_running_when_the_worker_stops_is_handed_back_at_once(
    database_url: str,
) -> None:
    begun = asyncio.Event()

    async def handle(_: Lease) -> None:
        begun.set()
        await asyncio.Event().wait()

    await enqueue(database_url, "m", lock="thread")
    async with working(database_url, handle):
        await begun.wait()

    assert await rows(database_url, "status, attempts, scheduled_at") == [("waiting", 1, None)]


async def test_an_end_is_written_until_it_is_written(database_url: str) -> None:
    """The database refuses to delete the job for a while; the conversation goes on after that."""
    seen: list[str] = []
    handled, done = asyncio.Event(), asyncio.Event()
    refuse = """
        create function public.refuse() returns trigger language plpgsql as
          $$ begin raise 'deadlock detected' using errcode = '40P01'; end $$;
        create trigger refuse before delete on feishu_bot.jobs
          for each row execute function public.refuse();
    """

    async def handle(lease: Lease) -> None:
        seen.append(text_of(lease))
        (done if len(seen) == 2 else handled).set()

    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(refuse)
        await enqueue(database_url, "first", "second", lock="thread")
        async with working(database_url, handle):
            await handled.wait()
            await asyncio.sleep(2 * ROUND_S)  # a round must not hand back what is being ended
            assert seen == ["first"]
            connection.execute("drop trigger refuse on feishu_bot.jobs")
            await done.wait()
            await until(rows, database_url, [])

    assert seen == ["first", "second"]


async def test_the_jobs_of_a_worker_that_is_gone_are_taken_over_within_three_seconds(
    database_url: str,
) -> None:
    taken: list[int] = []
    done = asyncio.Event()

    async def handle(lease: Lease) -> None:
        assert lease.job.attempt == 2
        done.set()

    async with job_table(database_url) as table:
        gone = idle_presence(database_url)
        await gone.begin()
        await enqueue(database_url, "m", lock="thread")
        assert len(await table.take(gone.worker, 1)) == 1
        async with working(database_url, handle, took_over=taken.append):
            await asyncio.sleep(2.5 * ROUND_S)
            assert not done.is_set()  # its session lives, however little it does
            await gone.end()
            async with asyncio.timeout(60):
                await done.wait()

    assert taken == [1]


async def test_a_worker_is_gone_when_two_rounds_in_a_row_miss_it(database_url: str) -> None:
    """After one round its session may only have been interrupted."""
    taken: list[int] = []
    async with job_table(database_url) as table:
        handlers = Handlers(_unhandled, _unexcused, taken.append)
        consumer = Consumer(table, database_url, handlers, concurrency=1)
        gone = idle_presence(database_url)
        await gone.begin()
        await enqueue(database_url, "m")
        assert len(await table.take(gone.worker, 1)) == 1
        await consumer._presence.begin()
        await gone.end()

        while not consumer._suspects:  # Postgres has not seen it end yet
            await consumer._put_right(await consumer._look())
        assert taken == []
        await consumer._put_right(await consumer._look())
        assert taken == [1]
        await consumer._presence.end()


async def _unhandled(_: Lease) -> None:
    raise AssertionError("it has not begun to work")


async def _unexcused(_: Lease, reason: str) -> bool:
    return False


async def test_who_is_told_that_a_worker_fell_waits_for_no_round(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consuming, "ROUND_S", 3600.0)
    fallen, done = asyncio.Event(), asyncio.Event()

    async def handle(_: Lease) -> None:
        done.set()

    async with job_table(database_url) as table:
        gone = idle_presence(database_url)
        await gone.begin()
        await enqueue(database_url, "m", lock="thread")
        assert len(await table.take(gone.worker, 1)) == 1
        async with working(database_url, handle, fallen=fallen):
            await gone.end()
            fallen.set()
            await done.wait()


async def test_a_lost_session_is_taken_up_again_without_waiting_for_a_round(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consuming, "ROUND_S", 3600.0)
    async with working(database_url, _nothing) as consumer:
        worker, lost = consumer._presence.worker, consumer._presence.lost

        async def is_lost(_: str) -> bool:
            return lost.is_set()

        assert await asyncio.to_thread(fetch, database_url, CUT_SESSIONS) == [True]
        await lost.wait()
        await until(is_lost, database_url, False)
        await enqueue(database_url, "heard of again")
        await until(rows, database_url, [])
        assert consumer._presence.worker == worker


async def test_after_a_failover_the_worker_takes_jobs_from_the_new_primary(
    database_url: str,
) -> None:
    async with working(database_url, _nothing) as consumer:
        with postgres.standby(database_url):
            await consumer._presence.lost.wait()
        await enqueue(database_url, "after it")
        await until(rows, database_url, [])


async def _nothing(_: Lease) -> None:
    pass


async def test_a_worker_without_a_session_is_gone_when_its_heartbeats_stop(
    database_url: str,
) -> None:
    """As with a transaction pooler, and as a worker of an earlier version."""
    begin = "select feishu_bot.begin_work(0, false)"
    age = "update feishu_bot.workers set last_heartbeat = now() - interval '20 s'"
    async with job_table(database_url) as table:
        [worker] = await asyncio.to_thread(fetch, database_url, begin)
        await enqueue(database_url, "m", lock="thread")
        assert len(await table.take(worker, 1)) == 1
        assert await table.take_over([worker]) == 0

        await asyncio.to_thread(fetch, database_url, age + " returning 1")
        assert await table.take_over([worker]) == 1


async def test_a_session_that_was_cut_is_taken_up_again_with_its_jobs(database_url: str) -> None:
    begun, over, cut = asyncio.Event(), asyncio.Event(), 0

    async def handle(lease: Lease) -> None:
        nonlocal cut
        cut += 1
        begun.set()
        await over.wait()

    await enqueue(database_url, "m", lock="thread")
    async with working(database_url, handle) as consumer:
        await begun.wait()
        worker = consumer._presence.worker
        assert await asyncio.to_thread(fetch, database_url, CUT_SESSIONS) == [True]
        await asyncio.sleep(3 * ROUND_S)
        assert consumer._presence.worker == worker
        over.set()
        await until(rows, database_url, [])
        await enqueue(database_url, "heard of again")
        await until(rows, database_url, [])

    assert cut == 2


async def test_what_a_lost_answer_took_is_handed_back(database_url: str) -> None:
    """The claim was committed, its answer never came: nobody has the job in hand."""
    done = asyncio.Event()

    async def handle(_: Lease) -> None:
        done.set()

    async with working(database_url, handle) as consumer, job_table(database_url) as table:
        await table.close_places(consumer._presence.worker)
        async with consumer._claiming:
            await enqueue(database_url, "m")
            assert len(await table.take(consumer._presence.worker, 1)) == 1
        await done.wait()


async def test_a_worker_that_was_replaced_leaves_its_jobs_to_the_others(database_url: str) -> None:
    """It was taken for dead: its end must not end what another has in hand."""
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def handle(_: Lease) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    await enqueue(database_url, "m", lock="thread")
    async with working(database_url, handle, concurrency=1) as consumer:
        await begun.wait()
        replaced = f"""
            set search_path = feishu_bot;
            update feishu_bot.jobs set worker_id = null, status = 'waiting',
              scheduled_at = now() + interval '1 hour';
            delete from feishu_bot.workers where id = {consumer._presence.worker};
        """
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute(replaced.encode())
        async with asyncio.timeout(20):
            await cancelled.wait()
        await until(rows, database_url, ["waiting"])

    assert await rows(database_url) == ["waiting"]


async def test_a_database_that_restarts_loses_and_doubles_no_job(database_url: str) -> None:
    """Every connection is cut, again and again, while jobs run."""
    seen: list[str] = []
    cut = """
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()
    """

    async def handle(lease: Lease) -> None:
        await asyncio.sleep(0.01)
        seen.append(text_of(lease))

    texts = [f"m{n}" for n in range(60)]
    await enqueue(database_url, *texts)
    async with working(database_url, handle, concurrency=4, within_s=60):
        for _ in range(8):
            await asyncio.sleep(0.05)
            await asyncio.to_thread(fetch, database_url, cut)
        await until(rows, database_url, [])

    assert set(seen) == set(texts)


async def test_an_event_is_accepted_once(database_url: str) -> None:
    await enqueue(database_url, "m", "m")

    assert await rows(database_url) == ["waiting"]


async def test_a_worker_that_is_not_registered_is_given_nothing(database_url: str) -> None:
    await enqueue(database_url, "m")
    async with job_table(database_url) as table:
        assert await table.take(4711, 1) == []

    assert await rows(database_url) == ["waiting"]


async def test_what_happened_to_a_job_is_kept_the_latest_fifty(database_url: str) -> None:
    await enqueue(database_url, "m", lock="thread")
    async with job_table(database_url) as table:
        for _ in range(60):
            [worker] = await asyncio.to_thread(
                fetch, database_url, "select feishu_bot.begin_work(0, false)"
            )
            [job] = await table.take(worker, 1)
            await table.again(job, worker, RunAgain(0.0))
        [job] = await table.take(worker, 1)
        aged = "update feishu_bot.workers set last_heartbeat = now() - interval '20 s' returning 1"
        await asyncio.to_thread(fetch, database_url, aged)
        assert await table.take_over([worker]) == 1

    kinds = "select e ->> 'type' from feishu_bot.jobs, jsonb_array_elements(events) e"
    found = await asyncio.to_thread(fetch, database_url, kinds)
    assert found == ["put_back"] * 49 + ["handed_back"]
    [told] = await asyncio.to_thread(fetch, database_url, "select feishu_bot.job_events(1)")
    assert [one["type"] for one in told] == ["queued", *found]


@pytest.mark.parametrize("ahead_s", [60, -60, 0])
async def test_a_worker_names_a_clock_that_differs_from_the_databases_once(
    database_url: str, ahead_s: float
) -> None:
    async def handle(_: Lease) -> None:
        raise AssertionError("nothing was asked")

    with capture_logs() as logs:
        async with working(database_url, handle, clock=lambda: time.time() + ahead_s):
            await asyncio.sleep(2.5 * ROUND_S)

    told = [entry["ahead_s"] for entry in logs if entry["event"] == "clock.differs"]
    assert told == ([pytest.approx(ahead_s, abs=1)] if ahead_s else [])
