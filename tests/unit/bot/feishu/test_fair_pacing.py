"""However much one person asks of Feishu, another's calls leave at once, and the limit is kept."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Coroutine
from pathlib import Path

import pytest

from bot.feishu.transport import FairPacer, OwnSlots, SharedPace, SharedSlots

LIMITS = [(5, 1.05), (10, 6.3)]


class VirtualTime:
    """Time that passes when everybody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.now + seconds, id(woken), woken))
        await woken

    async def run(self, main: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(main)
        while not task.done():
            for _ in range(20):
                await asyncio.sleep(0)
            if self._sleepers and not task.done():
                at, _, woken = heapq.heappop(self._sleepers)
                if not woken.done():
                    self.now = at
                    woken.set_result(None)
        await task


def waits_beside_a_flood(
    limit: int, window_s: float, *, flooders: int, calls: int, at_s: float, pace: SharedPace
) -> tuple[list[float], list[float]]:
    """How long each of Bob's calls waits `at_s` after the flood began, and when all calls left."""
    time, left, waits = VirtualTime(), list[float](), list[float]()
    pacer = FairPacer("x", limit, pace, window_s=window_s, clock=time, sleep=time.sleep)

    async def call(whose: str) -> None:
        await pacer.turn("read", whose)
        left.append(time.now)

    async def bob() -> None:
        await time.sleep(at_s)
        for _ in range(calls):
            began = time.now
            await call("Bob")
            waits.append(time.now - began)
            await time.sleep(0.02)

    async def everybody() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(60):
                group.create_task(call(f"flooder {number % flooders}"))
            group.create_task(bob())

    asyncio.run(time.run(everybody()))
    return waits, sorted(left)


@pytest.mark.parametrize(("limit", "window_s"), LIMITS)
@pytest.mark.parametrize("at_s", [0.001, 0.5, 1.0, 6.2, 20.0])
def test_another_persons_first_calls_leave_at_once(
    limit: int, window_s: float, at_s: float
) -> None:
    waits, _ = waits_beside_a_flood(
        limit, window_s, flooders=1, calls=limit // 2, at_s=at_s, pace=SharedPace()
    )
    assert max(waits) == 0


@pytest.mark.parametrize(("limit", "window_s"), LIMITS)
@pytest.mark.parametrize("flooders", [1, 3])
def test_the_limit_is_kept_and_everybody_comes_to_an_end(
    limit: int, window_s: float, flooders: int, tmp_path: Path
) -> None:
    for slots in (OwnSlots(), SharedSlots(tmp_path / "pace")):
        _, left = waits_beside_a_flood(
            limit, window_s, flooders=flooders, calls=9, at_s=0.3, pace=SharedPace(slots)
        )
        assert len(left) == 69
        for early, late in zip(left, left[limit:], strict=False):
            assert late - early >= window_s - 1e-6


def test_who_is_alone_has_half_of_the_limit_again_and_again() -> None:
    _, left = waits_beside_a_flood(10, 6.3, flooders=1, calls=0, at_s=0.0, pace=SharedPace())
    assert left[-1] - left[0] == pytest.approx((60 / 5 - 1) * 6.3, abs=0.1)


@pytest.mark.parametrize(("limit", "window_s"), LIMITS)
def test_two_processes_count_the_same_calls_of_a_person(
    limit: int, window_s: float, tmp_path: Path
) -> None:
    async def everybody() -> None:
        time = VirtualTime()
        one, other = (
            FairPacer(
                "x", limit, SharedPace(slots), window_s=window_s, clock=time, sleep=time.sleep
            )
            for slots in (SharedSlots(tmp_path / "pace"), SharedSlots(tmp_path / "pace"))
        )
        flood = [asyncio.create_task(one.turn("read", "Ann")) for _ in range(20)]
        flood += [asyncio.create_task(other.turn("read", "Ann")) for _ in range(20)]
        await time.run(another(other, limit // 2))
        assert time.now == 1000.0
        for task in flood:
            task.cancel()
        await asyncio.wait(flood)

    async def another(pacer: FairPacer, calls: int) -> None:
        for _ in range(calls):
            await pacer.turn("read", "Bob")

    asyncio.run(everybody())


def test_a_small_share_of_the_machine_is_shared_out_too() -> None:
    waits, left = waits_beside_a_flood(
        10, 6.3, flooders=1, calls=2, at_s=0.5, pace=SharedPace(share=0.5)
    )
    assert max(waits) == 0
    assert len(left) == 62


def test_who_gives_up_keeps_nobody_waiting() -> None:
    async def given_up() -> None:
        time = VirtualTime()
        pacer = FairPacer("x", 5, SharedPace(), window_s=1.05, clock=time, sleep=time.sleep)
        flood = [asyncio.create_task(pacer.turn("read", "Ann")) for _ in range(20)]
        for _ in range(20):
            await asyncio.sleep(0)
        for one in flood:
            one.cancel()
        await asyncio.wait(flood)
        await time.run(pacer.turn("read", "Bob"))
        assert time.now == 1000.0

    asyncio.run(given_up())
