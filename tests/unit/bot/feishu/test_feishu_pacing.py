"""Pacing per key and the shared tenant token, on a clock that only moves when told."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.feishu.errors import FeishuError, Unreachable
from bot.feishu.pacing import Pacer, next_slot
from bot.feishu.tokens import TenantToken, Token


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
    pacer = Pacer(5, clock=clock, sleep=clock.sleep)

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

    pacer = Pacer(5, clock=clock, sleep=sleep)

    async def messages() -> None:
        for _ in range(6):
            await pacer.turn("oc_1")
        await pacer.turn("oc_2")

    asyncio.run(messages())
    assert waits == [pytest.approx(1.05)]


def test_idle_chats_are_forgotten():
    clock = Clock()
    pacer = Pacer(5, clock=clock, sleep=clock.sleep)

    async def many() -> None:
        for number in range(5000):
            clock.now += 0.01
            await pacer.turn(f"oc_{number}")

    asyncio.run(many())
    assert len(pacer._slots) <= 1024


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
