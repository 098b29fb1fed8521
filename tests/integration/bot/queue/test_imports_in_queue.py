"""Steps of imports in the queue: behind everybody else, and two at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from bot.queue.consumer import Lease
from bot.queue.jobs import EVENT_TASK, IMPORT_TASK
from bot.queue.table import IMPORTS_AT_ONCE
from tests.support.queue import enqueue, fetch, job_table, rows, until, working

pytestmark = pytest.mark.anyio


def by_task(
    step: Callable[[Lease], Awaitable[None]], event: Callable[[Lease], Awaitable[None]]
) -> Callable[[Lease], Awaitable[None]]:
    async def handle(lease: Lease) -> None:
        await (step if lease.job.task == IMPORT_TASK else event)(lease)

    return handle


async def test_two_steps_run_at_a_time_however_many_imports_there_are(database_url: str) -> None:
    running, most, done = 0, 0, asyncio.Semaphore(0)

    async def step(lease: Lease) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(5):
            await asyncio.sleep(0)
        running -= 1
        done.release()

    async with job_table(database_url) as table:
        for number in range(12):
            await table.queue_import(number, {})
        async with working(database_url, by_task(step, step)):
            for _ in range(12):
                await done.acquire()
    assert most == IMPORTS_AT_ONCE


async def test_a_message_does_not_wait_for_imports(database_url: str) -> None:
    """Every place that imports may have is taken, and more of them wait."""
    held, begun, answered = asyncio.Event(), asyncio.Semaphore(0), asyncio.Event()

    async def step(_: Lease) -> None:
        begun.release()
        await held.wait()

    async def event(_: Lease) -> None:
        answered.set()

    async with job_table(database_url) as table:
        for number in range(10):
            await table.queue_import(number, {})
        places = IMPORTS_AT_ONCE + 1
        async with working(database_url, by_task(step, event), concurrency=places):
            for _ in range(IMPORTS_AT_ONCE):
                await begun.acquire()
            await enqueue(database_url, "hello", lock="feishu:oc_1:om_1")
            await answered.wait()
            held.set()


async def test_a_message_that_waits_is_taken_before_a_step_that_waits_longer(
    database_url: str,
) -> None:
    async with job_table(database_url) as table:
        for number in range(4):
            await table.queue_import(number, {})
        await enqueue(database_url, "hello", lock="feishu:oc_1:om_1")
        [first] = await table.take(await worker(database_url), 1)
    assert first.task == EVENT_TASK


async def test_a_step_that_waits_for_feishu_lets_the_other_imports_of_its_place_go_first(
    database_url: str,
) -> None:
    async with job_table(database_url) as table:
        await table.queue_import(2, {"wait_s": 3600, "tries": 3})
        await table.queue_import(4, {})
        number = await worker(database_url)
        taken = await table.take(number, 9)
    assert [job.args["import_id"] for job in taken] == [4]


async def test_a_step_that_has_waited_stands_in_line_like_the_others_again(
    database_url: str,
) -> None:
    async with job_table(database_url) as table:
        await table.queue_import(2, {"wait_s": 0.001})
        await table.queue_import(4, {})
        await until(is_due, database_url, [True, None])
        assert not await table.queue_idle_import(2)
        taken = await table.take(await worker(database_url), 9)
    assert [job.args["import_id"] for job in taken] == [2]


async def is_due(url: str) -> list[bool | None]:
    return await rows(url, "scheduled_at <= now()")


async def test_an_import_has_one_job_and_keeps_what_was_noted_of_it(database_url: str) -> None:
    async with job_table(database_url) as table:
        await table.queue_import(7, {"quiet": True})
        await table.queue_import(7, {"total": 12})
        assert not await table.queue_idle_import(7)
        assert await table.queue_idle_import(8)
        [args] = [row for row in await rows(database_url, "args") if row["import_id"] == 7]
        assert args == {"import_id": 7, "quiet": True, "total": 12}
        number = await worker(database_url)
        await table.take(number, 9)
        assert not await table.queue_idle_import(7)


async def worker(url: str) -> int:
    """A worker that is registered."""
    [number] = await asyncio.to_thread(fetch, url, "select feishu_bot.begin_work(null, false)")
    return int(number)
