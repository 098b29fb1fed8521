"""Pacing per key and the shared tenant token, on a clock that only moves when told."""

import asyncio
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.feishu.caller import TenantToken, Token
from bot.feishu.errors import FeishuError, Unreachable
from bot.feishu.transport import (
    OwnSlots,
    Pacer,
    SharedPace,
    SharedSlots,
    fractional_pacer,
    next_slot,
    per_second_pacer,
    shared_limit,
)
from tests.support.rows import every_row


class Clock:
    """Seconds that pass only in `sleep`."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Source:
    """Hands out the tokens (or failures) given, counting."""

    def __init__(self, *answers: Token | Exception) -> None:
        self.answers = list(answers)
        self.calls = 0

    async def __call__(self) -> Token:
        self.calls += 1
        await asyncio.sleep(0)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@given(st.integers(1, 6), st.lists(st.floats(0, 2), min_size=1, max_size=40))
def test_no_second_ever_holds_more_than_the_limit(limit, gaps):
    slots: tuple[float, ...] = ()
    now, taken = 0.0, []
    for gap in gaps:
        now += gap
        slots, wait_s = next_slot(slots, now, limit)
        assert wait_s >= 0
        taken.append(now + wait_s)
    assert taken == sorted(taken)
    for early, late in zip(taken, taken[limit:], strict=False):
        assert late - early > 1.0


def test_a_burst_within_the_limit_does_not_wait():
    clock = Clock()
    pacer = Pacer("chat", 5, SharedPace(), clock=clock, sleep=clock.sleep)

    async def burst() -> None:
        for _ in range(5):
            await pacer.turn("oc_1")

    asyncio.run(burst())
    assert clock.slept == []


def test_the_sixth_message_of_a_chat_waits_while_another_chat_goes_on():
    clock = Clock()
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    pacer = Pacer("chat", 5, SharedPace(), clock=clock, sleep=sleep)

    async def messages() -> None:
        for _ in range(6):
            await pacer.turn("oc_1")
        await pacer.turn("oc_2")

    asyncio.run(messages())
    assert waits == [pytest.approx(1.05)]


def test_idle_chats_are_forgotten():
    slots = OwnSlots()
    for number in range(5000):
        slots.take(f"oc_{number}", number * 0.01, 5, 1.0)
    assert len(slots._slots) <= 1024


@given(
    st.integers(1, 10),
    st.floats(0.01, 1.0, exclude_min=True),
    st.lists(st.floats(0, 0.5), min_size=1, max_size=60),
)
def test_a_share_of_a_limit_is_never_exceeded(limit, share, gaps):
    calls, window_s = shared_limit(limit, share)
    slots, now, taken = OwnSlots(), 0.0, []
    for gap in gaps:
        now += gap
        taken.append(now + slots.take("oc_1", now, calls, window_s))
    assert calls / window_s <= limit * share / 1.0
    for early, late in zip(taken, taken[calls:], strict=False):
        assert late - early >= window_s - 1e-9


def test_two_senders_with_half_a_limit_each_stay_within_it():
    calls, window_s = shared_limit(5, 0.5)
    assert 2 * calls <= 5
    assert window_s == pytest.approx(1.05)


def test_more_senders_than_calls_take_turns_over_longer_times():
    calls, window_s = shared_limit(5, 0.1)
    assert (calls, window_s) == (1, pytest.approx(2.1))


def test_fifty_a_second_leave_evenly():
    clock = Clock()
    pacer = per_second_pacer("app", 50, SharedPace(), clock=clock, sleep=clock.sleep)

    async def burst() -> list[float]:
        left = []
        for _ in range(150):
            await pacer.turn("reply")
            left.append(clock.now)
        return left

    left = asyncio.run(burst())
    assert left[-1] - left[0] == pytest.approx(150 / 50 * 1.05 - 0.21, abs=0.01)
    for early, late in zip(left, left[50:], strict=False):
        assert late - early > 1.0


TAKES = """
import sys, time
from pathlib import Path
from bot.feishu.transport import SharedSlots
slots = SharedSlots(Path(sys.argv[1]))
sys.stdin.readline()
for _ in range(25):
    now = time.monotonic()
    print(now + slots.take("chat:oc_1", now, 5, 1.05))
    slots.take("chat:oc_2", now, 5, 1.05)
"""


def test_processes_that_share_a_file_stay_within_one_limit(tmp_path):
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", TAKES, str(tmp_path / "pace")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    said = [process.communicate()[0].splitlines() for process in processes]
    left = sorted(float(line) for lines in said for line in lines)
    assert len(left) == 100
    for early, late in zip(left, left[5:], strict=False):
        assert late - early >= 1.05 - 1e-6


def test_slots_of_before_a_restart_of_the_machine_hold_nobody_up(tmp_path):
    slots = SharedSlots(tmp_path / "pace")
    for _ in range(5):
        slots.take("oc_1", 1_000_000.0, 5, 1.05)
    assert slots.take("oc_1", 10.0, 5, 1.05) == 0


def test_an_unhurried_call_costs_microseconds(tmp_path):
    slots = SharedSlots(tmp_path / "pace")
    started = time.process_time()
    for number in range(1000):
        slots.take(f"oc_{number}", float(number), 5, 1.05)
    assert time.process_time() - started < 0.5


def test_fifty_waiting_calls_share_one_fetch():
    source = Source(Token("t-1", 7200))

    async def all_at_once() -> list[str]:
        tokens = TenantToken(source, clock=Clock())
        return await asyncio.gather(*(tokens.get() for _ in range(50)))

    assert set(asyncio.run(all_at_once())) == {"t-1"}
    assert source.calls == 1


def test_a_token_is_renewed_half_an_hour_before_its_end():
    clock, source = Clock(), Source(Token("t-1", 7200), Token("t-2", 7200))

    async def later() -> list[str]:
        tokens = TenantToken(source, clock=clock)
        seen = [await tokens.get()]
        for now in (1000 + 5399, 1000 + 5400):
            clock.now = now
            seen.append(await tokens.get())
        return seen

    assert asyncio.run(later()) == ["t-1", "t-1", "t-2"]


def test_a_short_lived_token_is_not_fetched_for_every_call():
    clock, source = Clock(), Source(Token("t-1", 60), Token("t-2", 60))

    async def calls() -> list[str]:
        tokens = TenantToken(source, clock=clock)
        seen = []
        for _ in range(5):
            seen.append(await tokens.get())
            clock.now += 10
        return seen

    assert asyncio.run(calls()) == ["t-1"] * 5


def test_a_purged_token_is_fetched_anew_but_only_if_it_is_still_the_one():
    source = Source(Token("t-1", 7200), Token("t-2", 7200))

    async def purges() -> list[str]:
        tokens = TenantToken(source, clock=Clock())
        first = await tokens.get()
        tokens.purge(first)
        second = await tokens.get()
        tokens.purge(first)
        return [first, second, await tokens.get()]

    assert asyncio.run(purges()) == ["t-1", "t-2", "t-2"]


def test_a_failed_renewal_keeps_the_token_that_still_works():
    clock, source = Clock(), Source(Token("t-1", 7200), Unreachable("x"), FeishuError(10014))

    async def later() -> str:
        tokens = TenantToken(source, clock=clock)
        await tokens.get()
        clock.now += 6000
        assert await tokens.get() == "t-1"
        assert await tokens.get() == "t-1"
        assert source.calls == 2
        clock.now += 1300
        with pytest.raises(FeishuError):
            await tokens.get()
        return "done"

    assert asyncio.run(later()) == "done"


def test_a_token_does_not_show_itself():
    assert "t-1" not in repr(Token("t-1", 7200))


@every_row("calls", [1, 4, 20, 50, 400])
def test_a_fraction_of_a_limit_is_never_more_than_that(calls):
    clock = Clock()
    pacer = fractional_pacer("history", calls, 5, SharedPace(), clock=clock, sleep=clock.sleep)

    async def many() -> None:
        for _ in range(201):
            await pacer.turn("messages")

    asyncio.run(many())
    assert clock.now - 1000.0 == pytest.approx(200 * 5 / calls * 1.05, rel=0.06)
