"""However many calls one person makes, another's first ones are not behind all of them."""

from __future__ import annotations

import asyncio

import pytest

from bot.process.concurrency import FewestTurnsQueue

pytestmark = pytest.mark.anyio


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def call(queue: FewestTurnsQueue, whose: str, order: list[str]) -> None:
    await queue.enter(whose)
    order.append(whose)
    await asyncio.sleep(0)
    queue.leave()


async def test_somebodys_first_calls_pass_anothers_many() -> None:
    queue, order = FewestTurnsQueue(), list[str]()
    async with asyncio.TaskGroup() as group:
        for _ in range(60):
            group.create_task(call(queue, "Alice", order))
        for _ in range(10):
            await asyncio.sleep(0)
        before = len(order)
        for _ in range(4):
            group.create_task(call(queue, "Bob", order))
    assert len(order) == 64
    assert order[before : before + 6].count("Bob") == 4


async def test_who_had_turns_long_ago_is_like_anybody_else() -> None:
    clock = Clock()
    queue, order = FewestTurnsQueue(clock), list[str]()
    for _ in range(5):
        await call(queue, "Alice", order)
    clock.now = 31.0
    await queue.enter("Bob")
    async with asyncio.TaskGroup() as group:
        group.create_task(call(queue, "Alice", order))
        await asyncio.sleep(0)
        group.create_task(call(queue, "Bob", order))
        await asyncio.sleep(0)
        queue.leave()
    assert order[-2:] == ["Alice", "Bob"]


async def test_who_gives_up_holds_up_nobody() -> None:
    queue, order = FewestTurnsQueue(), list[str]()
    await queue.enter("Alice")
    waiting = [asyncio.create_task(call(queue, "Bob", order)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    queue.leave()
    waiting[1].cancel()  # it has just been called
    await asyncio.wait(waiting)
    assert order == ["Bob"]
    await asyncio.wait_for(call(queue, "陈晨", order), 1)


async def test_who_gives_up_together_with_the_one_before_is_passed_over() -> None:
    queue = FewestTurnsQueue(Clock())
    everybody = [asyncio.create_task(hold(queue, "Alice")) for _ in range(5)]
    await asyncio.sleep(0)
    for one in everybody:
        one.cancel()
    await asyncio.wait(everybody)
    await asyncio.wait_for(queue.enter("Bob"), 1)


async def hold(queue: FewestTurnsQueue, whose: str) -> None:
    await queue.enter(whose)
    try:
        await asyncio.Event().wait()
    finally:
        queue.leave()
