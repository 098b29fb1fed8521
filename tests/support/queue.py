"""A worker of the queue within the test: what it does is the test's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

from bot.process.concurrency import cancel_tasks
from bot.queue.consumer import Consumer, Handlers, Lease
from bot.queue.inbox import Inbox
from bot.queue.jobs import Job
from bot.queue.table import Hearing, JobTable, Presence
from memory.backends.postgres import connection_pool
from tests.support.patience import limit_s

Handle = Callable[[Lease], Awaitable[None]]


async def _unanswered(lease: Lease, reason: str) -> bool:
    """Nobody is told."""
    return False


@asynccontextmanager
async def job_table(url: str, *, size: int = 4) -> AsyncIterator[JobTable]:
    """The table of the queue in the database `url`."""
    async with connection_pool(url, size=size) as pool:
        yield JobTable(pool)


def idle_presence(url: str, *, places: int = 0) -> Presence:
    """A worker that is there and does nothing with what it hears."""
    return Presence(url, Hearing(lambda: None, lambda _: None), places=places)


async def _begun(consumer: Consumer, work: asyncio.Task[None]) -> None:
    """Returns when the worker is registered, or has failed to be."""
    for _ in range(2000):
        if consumer._presence.worker or work.done():
            return
        await asyncio.sleep(0.01)


@asynccontextmanager
async def working(
    url: str,
    handle: Handle,
    *,
    concurrency: int = 8,
    in_hand: int = 256,
    grace_s: float = 0.2,
    give_up: Callable[[Lease, str], Awaitable[bool]] = _unanswered,
    took_over: Callable[[int], None] = lambda _: None,
    within_s: float = 60,
    stop: asyncio.Event | None = None,
    fallen: asyncio.Event | None = None,
    clock: Callable[[], float] = time.time,
) -> AsyncIterator[Consumer]:
    """A worker at work, until `stop` or the end of the body, which has `within_s` seconds."""
    stop = stop or asyncio.Event()
    async with job_table(url) as table:
        handlers = Handlers(handle, give_up, took_over)
        consumer = Consumer(
            table,
            url,
            handlers,
            concurrency=concurrency,
            in_hand=in_hand,
            grace_s=grace_s,
            fallen_event=fallen,
            clock=clock,
        )
        task = asyncio.create_task(consumer.work(stop))
        try:
            async with asyncio.timeout(limit_s(within_s)):
                await _begun(consumer, task)
                yield consumer
        finally:
            stop.set()
            await asyncio.wait({task}, timeout=grace_s + 5)
            await cancel_tasks([task])


def first_look(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Is set when a worker that starts from now on has looked for what waits."""
    looked, take = asyncio.Event(), JobTable.take

    async def taken(table: JobTable, worker: int, most: int) -> list[Job]:
        jobs = await take(table, worker, most)
        looked.set()
        return jobs

    monkeypatch.setattr(JobTable, "take", taken)
    return looked


async def enqueue(url: str, *texts: str, lock: str | None = None) -> None:
    """One event each; those without `lock` may run side by side."""

    def put() -> None:
        inbox = Inbox(url)
        for text in texts:
            inbox.enqueue(text, {"text": text}, lock=lock, received_ms=1_800_000_000_000)
        inbox.close()

    await asyncio.to_thread(put)


def text_of(lease: Lease) -> str:
    """The text of an event of `enqueue`."""
    text: str = lease.job.args["payload"]["text"]
    return text


async def rows(url: str, columns: str = "status") -> list[Any]:
    """The jobs, in the order of their ids."""
    query = f"select {columns} from feishu_bot.jobs order by id"
    return await asyncio.to_thread(fetch, url, query)


def fetch(url: str, query: str) -> list[Any]:
    """The rows of a query; of one column its values."""
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(query.encode()).fetchall()
    return [row[0] if len(row) == 1 else row for row in found]


async def until(condition: Callable[[str], Awaitable[Any]], url: str, wanted: object) -> None:
    """Returns when what `condition` gives is `wanted`; the test has a time limit."""
    for _ in range(6000):
        if await condition(url) == wanted:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"never {wanted!r}")
