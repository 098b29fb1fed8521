"""A person's own places among the turns of one worker."""

from __future__ import annotations

import asyncio

import pytest

from bot.process.concurrency import ConcurrencySlots, asker_of_task, room_to_begin
from bot.queue.consumer import PerUserSemaphore
from memory.scope import FeishuPerson

ALICE, BOB = FeishuPerson("t", "ou_alice"), FeishuPerson("t", "ou_bob")


@pytest.mark.anyio
async def test_a_person_fills_their_own_places_and_no_others() -> None:
    shares, running = PerUserSemaphore(2), list[FeishuPerson]()
    places, ends = ConcurrencySlots(9), asyncio.Event()

    async def turn(asker: FeishuPerson) -> None:
        with places.hold("chat"):
            await room_to_begin()
            async with shares.hold(asker):
                running.append(asker)
                await ends.wait()

    turns = [asyncio.create_task(turn(ALICE)) for _ in range(5)]
    await asyncio.sleep(0)
    turns.append(asyncio.create_task(turn(BOB)))
    await asyncio.sleep(0)
    assert running == [ALICE, ALICE, BOB]
    assert places.free == 6, "who waits for turns of their own takes no place"
    ends.set()
    await asyncio.gather(*turns)
    assert len(running) == 6
    assert places.free == 9


@pytest.mark.anyio
async def test_what_is_done_for_somebody_takes_their_share_of_feishus_limits() -> None:
    shares, seen = PerUserSemaphore(2), dict[str, str]()

    async def work(asker: FeishuPerson) -> None:
        async with shares.hold(asker):
            await asyncio.sleep(0)
            seen[asker.open_id] = await asyncio.create_task(told())

    async def told() -> str:
        return asker_of_task()

    await asyncio.gather(work(ALICE), work(BOB))
    assert seen == {one: one for one in (ALICE.open_id, BOB.open_id)}
    assert asker_of_task() == ""
