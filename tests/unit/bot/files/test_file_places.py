"""Who reads a file next when several people want to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.files.reading import (
    READING_SLOTS,
    SLOTS_OF_A_CHAT,
    SLOTS_OF_A_PERSON,
    FileReader,
    NoReadingSlot,
    Read,
    ReadingLimits,
    ReadingSlots,
)
from tests.support import hostile_files as made

pytestmark = pytest.mark.anyio


class Readers:
    """People who want places, the order in which they got them, and who holds one now."""

    def __init__(self) -> None:
        self.places = ReadingSlots()
        self.admitted: list[str] = []
        self.holding: list[tuple[str, str]] = []
        self.done: dict[str, asyncio.Event] = {}
        self.tasks: list[asyncio.Task[None]] = []

    async def want(self, name: str, person: str, chat: str) -> None:
        self.done[name] = asyncio.Event()
        self.tasks.append(asyncio.create_task(self._read(name, person, chat)))
        await self.settle()

    async def _read(self, name: str, person: str, chat: str) -> None:
        async with self.places.hold(person, chat, within_s=5.0):
            self.admitted.append(name)
            self.holding.append((person, chat))
            await self.done[name].wait()
            self.holding.remove((person, chat))

    async def finish(self, name: str) -> None:
        self.done[name].set()
        await self.settle()

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


@asynccontextmanager
async def readers() -> AsyncIterator[Readers]:
    made = Readers()
    try:
        yield made
    finally:
        for task in made.tasks:
            task.cancel()
        await asyncio.gather(*made.tasks, return_exceptions=True)


async def test_a_persons_second_file_waits_behind_the_first_of_others() -> None:
    async with readers() as all_:
        for name, person, chat in (
            ("a1", "Alice", "x"), ("a2", "Alice", "x"), ("a3", "Alice", "x"),
            ("b1", "Bob", "x"), ("c1", "Carol", "x"), ("d1", "Dan", "y"),
        ):  # fmt: skip
            await all_.want(name, person, chat)
        assert all_.admitted == ["a1", "b1", "d1"]
        await all_.finish("a1")
        assert all_.admitted[3:] == ["c1"], "who had none yet goes before Alice's second"
        await all_.finish("b1")
        assert all_.admitted[4:] == ["a2"]


async def test_a_crowded_chat_leaves_a_place_to_others() -> None:
    async with readers() as all_:
        for number in range(6):
            await all_.want(f"x{number}", f"person {number}", "x")
        assert len(all_.admitted) == SLOTS_OF_A_CHAT
        await all_.want("y", "somebody", "y")
        assert all_.admitted[-1] == "y"


async def test_who_gives_up_waiting_leaves_the_queue() -> None:
    places = ReadingSlots()
    async with places.hold("Alice", "x", within_s=1):
        with pytest.raises(NoReadingSlot):
            async with places.hold("Alice", "x", within_s=0.01):
                raise AssertionError("Alice holds one already")
        async with places.hold("Bob", "x", within_s=0.01):
            pass
    async with places.hold("Alice", "x", within_s=0.01):
        pass


@given(
    st.lists(st.tuples(st.sampled_from("ABCDE"), st.sampled_from("xyz")), max_size=20), st.data()
)
def test_shares_hold_whatever_the_order_and_everybody_gets_a_place(
    wanted: list[tuple[str, str]], data: st.DataObject
) -> None:
    async def play() -> None:
        async with readers() as all_:
            for number, (person, chat) in enumerate(wanted):
                await all_.want(str(number), person, chat)
                _assert_shares(all_)
            running = list(all_.admitted)
            while running:
                await all_.finish(running.pop(data.draw(st.integers(0, len(running) - 1))))
                running += all_.admitted[len(all_.admitted) - _new(all_, running) :]
                _assert_shares(all_)
            assert sorted(all_.admitted, key=int) == [str(n) for n in range(len(wanted))]

    asyncio.run(play())


def _new(all_: Readers, running: list[str]) -> int:
    unfinished = [one for one in all_.admitted if not all_.done[one].is_set()]
    return len(unfinished) - len(running)


def _assert_shares(all_: Readers) -> None:
    people, chats = zip(*all_.holding, strict=True) if all_.holding else ((), ())
    assert len(all_.holding) <= READING_SLOTS
    assert all(people.count(one) <= SLOTS_OF_A_PERSON for one in people)
    assert all(chats.count(one) <= SLOTS_OF_A_CHAT for one in chats)


async def test_a_small_file_does_not_wait_for_eight_bombs() -> None:
    reader, limits = FileReader(), ReadingLimits(megabytes=20, seconds=30, characters=20_000)
    bombs = [made.pdf_of_operators(), made.slow_pdf()] * 4

    async def read(person: str, name: str, data: bytes) -> object:
        async with reader.place(person, "one chat", limits):
            return await reader.read(name, data, limits)

    async with AsyncExitStack() as stack:
        tasks = [asyncio.create_task(read("Mallory", "a.pdf", bomb)) for bomb in bombs]
        stack.push_async_callback(asyncio.wait, tasks)
        for task in tasks:
            stack.callback(task.cancel)
        await asyncio.sleep(0.5)
        assert await read("Bob", "a.docx", made.docx("the plan")) == Read("the plan")
        assert sum(task.done() for task in tasks) < len(bombs) / 2
