"""Places are for work: who waits takes none, and the chats take turns."""

from __future__ import annotations

import asyncio

import pytest

from bot.process.concurrency import (
    ConcurrencySlots,
    chat_of_job,
    room_to_begin,
    room_to_go_on,
    without_slot,
)

pytestmark = pytest.mark.anyio


async def turns_of_the_loop() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Jobs:
    """Jobs that work until they are told to end, and in which order they began."""

    def __init__(self, places: ConcurrencySlots) -> None:
        self.places = places
        self.begun: list[str] = []
        self.ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def start(self, *names: str) -> None:
        """A name is chat and number: “a1”."""
        for name in names:
            self.ends[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._run(name))
            await turns_of_the_loop()

    async def end(self, *names: str) -> None:
        for name in names:
            self.ends[name].set()
            await self.tasks[name]
            await turns_of_the_loop()

    async def end_all(self) -> None:
        for end in self.ends.values():
            end.set()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)

    async def _run(self, name: str) -> None:
        with self.places.hold(name[0]):
            await room_to_begin()
            self.begun.append(name)
            await self.ends[name].wait()


async def test_no_more_begin_than_there_are_places_and_the_chats_take_turns() -> None:
    jobs = Jobs(ConcurrencySlots(1))
    await jobs.start("a1", "a2", "a3", "a4", "b1", "c1")
    assert jobs.begun == ["a1"]
    for name in ("a1", "a2", "b1", "c1", "a3"):
        await jobs.end(name)

    assert jobs.begun == ["a1", "a2", "b1", "c1", "a3", "a4"]
    await jobs.end_all()
    assert jobs.places.free == 1
    assert jobs.places.to_spare == 1


async def test_who_waits_for_somebody_else_takes_no_place_and_goes_on_at_once() -> None:
    places = ConcurrencySlots(1)
    answered, went_on = asyncio.Event(), asyncio.Event()

    async def ask() -> None:
        with places.hold("a"):
            await room_to_begin()
            with without_slot():
                await answered.wait()
            went_on.set()
            await asyncio.Event().wait()

    asking = asyncio.create_task(ask())
    await turns_of_the_loop()
    assert places.free == 1
    jobs = Jobs(places)
    await jobs.start("b1")
    assert jobs.begun == ["b1"]
    answered.set()
    await went_on.wait()

    assert places.free == -1
    asking.cancel()
    await jobs.end_all()
    await asyncio.wait({asking})
    assert places.free == 1


async def test_who_goes_on_to_more_work_waits_for_room_and_takes_turns_with_who_begins() -> None:
    places, order = ConcurrencySlots(1), list[str]()
    answered = asyncio.Event()

    async def ask(name: str) -> None:
        with places.hold(name):
            await room_to_begin()
            with without_slot():
                await answered.wait()
            await room_to_go_on()
            order.append(name)
            await turns_of_the_loop()

    asking = [asyncio.create_task(ask(f"asked {number}")) for number in range(4)]
    await turns_of_the_loop()
    jobs = Jobs(places)
    await jobs.start("a1", "b1", "c1")
    answered.set()
    await turns_of_the_loop()
    assert order == []
    await jobs.end("a1")
    await turns_of_the_loop()
    assert len(order) == 1
    assert jobs.begun == ["a1", "b1"]
    await jobs.end("b1", "c1")
    await asyncio.gather(*asking)

    assert sorted(order) == [f"asked {number}" for number in range(4)]
    assert places.free == 1


async def test_a_job_waits_while_any_of_its_tasks_does_and_works_when_none_does() -> None:
    places = ConcurrencySlots(1)
    first, second = asyncio.Event(), asyncio.Event()

    async def wait_for(event: asyncio.Event) -> None:
        with without_slot():
            await event.wait()

    async def job() -> None:
        with places.hold("a"):
            await room_to_begin()
            await asyncio.gather(wait_for(first), wait_for(second))
            assert places.free == 0
            assert chat_of_job() == "a"

    running = asyncio.create_task(job())
    await turns_of_the_loop()
    assert places.free == 1
    first.set()
    await turns_of_the_loop()
    assert places.free == 1
    second.set()
    await running
    assert places.free == 1


async def test_who_is_cancelled_in_line_or_when_called_leaves_the_place_to_the_next() -> None:
    jobs = Jobs(ConcurrencySlots(1))
    await jobs.start("a1", "b1", "c1", "d1")
    jobs.tasks["b1"].cancel()
    await turns_of_the_loop()
    jobs.ends["a1"].set()
    await asyncio.sleep(0)  # a1 ends and calls c1, which has not come yet
    jobs.tasks["c1"].cancel()
    await turns_of_the_loop()

    assert jobs.begun in (["a1", "d1"], ["a1", "c1", "d1"])
    await jobs.end_all()
    assert jobs.places.free == 1
    assert jobs.places.to_spare == 1


async def test_what_is_short_needs_no_place_and_counts_until_it_ends() -> None:
    places = ConcurrencySlots(2)
    jobs = Jobs(places)
    await jobs.start("a1", "b1")
    with places.hold("c"):
        assert places.to_spare == 1
        with without_slot():
            assert places.free == 0
    assert places.to_spare == 2
    assert places.free == 0
    await jobs.end_all()


async def test_outside_of_a_job_nobody_waits() -> None:
    with without_slot():
        await room_to_begin()
        await room_to_go_on()
    assert chat_of_job() == ""
