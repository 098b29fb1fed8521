"""A worker of the queue within the test: what it does is the test's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from bot.ending import ended
from bot.queue.consumer import Consumer, Handlers, Lease
from bot.queue.jobs import Job
from bot.queue.table import JobTable
from memory.backends.postgres import connection_pool

Handle = Callable[[Lease], Awaitable[None]]


async def _unanswered(job: Job, reason: str) -> bool:
    """Nobody is told."""
    return False


@asynccontextmanager
async def job_table(url: str, *, size: int = 4) -> AsyncIterator[JobTable]:
    """The table of the queue in the database `url`."""
    async with connection_pool(url, size=size) as pool:
        yield JobTable(pool)


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
    grace_s: float = 0.2,
    give_up: Callable[[Job, str], Awaitable[bool]] = _unanswered,
    took_over: Callable[[int], None] = lambda _: None,
    within_s: float = 20,
) -> AsyncIterator[Consumer]:
    """A worker at work; the body has `within_s` seconds."""
    stop = asyncio.Event()
    async with job_table(url) as table:
        handlers = Handlers(handle, give_up, took_over)
        consumer = Consumer(table, url, handlers, concurrency=concurrency, grace_s=grace_s)
        task = asyncio.create_task(consumer.work(stop))
        try:
            async with asyncio.timeout(within_s):
                await _begun(consumer, task)
                yield consumer
        finally:
            stop.set()
            await asyncio.wait({task}, timeout=grace_s + 5)
            await ended([task])
