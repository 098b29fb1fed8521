"""Names by open_id: learned, asked for in tens, kept for a while, never waited for long."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from bot.feishu.errors import Unreachable
from bot.people import People

pytestmark = pytest.mark.anyio


class Directory:
    """Feishu's names, as the client answers them."""

    def __init__(self, names: dict[str, str]) -> None:
        self.known = names
        self.calls: list[list[str]] = []
        self.failure: Exception | None = None
        self.answering = asyncio.Event()
        self.answering.set()

    async def names(self, open_ids: Iterable[str]) -> dict[str, str]:
        asked = list(open_ids)
        self.calls.append(asked)
        await self.answering.wait()
        if self.failure:
            raise self.failure
        return {i: self.known[i] for i in asked if i in self.known}


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def people(directory: Directory, clock: Clock | None = None) -> People:
    return People(directory, clock=clock or Clock())  # type: ignore[arg-type]


async def test_a_name_is_asked_for_once_and_again_when_it_is_old() -> None:
    directory, clock = Directory({"ou_a": "Alice"}), Clock()
    known = people(directory, clock)
    await known.look_up(["ou_a", "ou_a", ""])
    await known.look_up(["ou_a"])
    assert known.name("ou_a") == "Alice"
    assert directory.calls == [["ou_a"]]

    directory.known["ou_a"] = "Alice Lee"
    clock.now += 7 * 3600
    await known.look_up(["ou_a"])
    assert known.name("ou_a") == "Alice Lee"


async def test_whoever_asks_at_once_shares_calls_of_ten() -> None:
    directory = Directory({f"ou_{n}": f"Person {n}" for n in range(25)})
    known = people(directory)
    await asyncio.gather(*(known.look_up([f"ou_{n}"]) for n in range(25)))
    assert known.name("ou_24") == "Person 24"
    assert [len(call) for call in directory.calls] == [10, 10, 5]


async def test_a_slow_directory_is_not_waited_for_and_its_answer_is_kept() -> None:
    directory = Directory({"ou_a": "Alice"})
    directory.answering.clear()
    known = people(directory)
    await known.look_up(["ou_a"], wait_s=0.01)
    assert known.name("ou_a") == "ou_a"

    directory.answering.set()
    await known.look_up(["ou_a"])
    assert known.name("ou_a") == "Alice"
    assert len(directory.calls) == 1


async def test_a_failure_keeps_the_old_name_and_is_not_repeated_at_once() -> None:
    directory, clock = Directory({}), Clock()
    known = people(directory, clock)
    known.learn([("ou_a", "Alice"), ("ou_b", "")])
    clock.now += 7 * 3600
    directory.failure = Unreachable("timeout")
    await known.look_up(["ou_a"])
    await known.look_up(["ou_a"])
    assert known.name("ou_a") == "Alice"
    assert len(directory.calls) == 1
