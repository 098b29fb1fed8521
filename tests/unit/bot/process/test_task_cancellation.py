"""Background tasks end, even if a cancellation gets lost on the way."""

from __future__ import annotations

import asyncio

import pytest

from bot.process.concurrency import cancel_tasks

pytestmark = pytest.mark.anyio


async def test_a_task_that_swallows_a_cancellation_is_ended_all_the_same() -> None:
    waiting, swallowed = asyncio.Event(), []

    async def stubborn() -> None:
        while True:
            try:
                waiting.set()
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                if swallowed:
                    raise
                swallowed.append(1)

    task = asyncio.create_task(stubborn())
    await waiting.wait()
    await asyncio.wait_for(cancel_tasks([task]), 10)

    assert swallowed == [1]
    assert task.cancelled()


async def test_what_has_ended_already_is_left_as_it_is() -> None:
    async def done() -> int:
        return 5

    task = asyncio.create_task(done())
    await task
    await cancel_tasks([task])

    assert task.result() == 5
    await cancel_tasks([])
