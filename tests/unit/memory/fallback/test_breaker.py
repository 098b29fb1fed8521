"""The circuit breaker in front of the memory, on a clock of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
import structlog.testing
from hypothesis import given
from hypothesis import strategies as st

from memory.errors import AccessDenied, KeyRefused, StoreUnavailable
from memory.fallback.breaker import BreakingRpc, CircuitBreaker, MemoryWatch

pytestmark = pytest.mark.anyio


PROBE = (("ping", {}, None),)


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Memory:
    """An `Rpc` whose calls end as told; `calls` counts those that got through."""

    outcomes: list[Exception | str] = field(default_factory=list)
    calls: int = 0
    hanging: bool = False

    async def call(self, function: str, params: Mapping[str, object], context: object) -> str:
        self.calls += 1
        if self.hanging:
            await asyncio.Event().wait()
        outcome = self.outcomes.pop(0) if self.outcomes else "answer"
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def close(self) -> None: ...


@dataclass
class Told(MemoryWatch):
    """Remembers what it is told."""

    failures: list[str] = field(default_factory=list)
    states: list[str] = field(default_factory=list)

    def count_failure(self, kind: str) -> None:
        self.failures.append(kind)

    def state(self, state: str) -> None:
        self.states.append(state)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> CircuitBreaker:
    return CircuitBreaker(failures=3, window_s=10, probe_every_s=2, clock=clock)


def _fail(breaker: CircuitBreaker, times: int) -> None:
    for _ in range(times):
        assert breaker.admit()
        breaker.note_failure()


def test_a_breaker_opens_after_the_given_number_of_failures_in_a_row(
    breaker: CircuitBreaker,
) -> None:
    _fail(breaker, 2)
    assert breaker.state == "closed"

    _fail(breaker, 1)

    assert breaker.state == "open"
    assert not breaker.admit()


def test_a_success_in_between_starts_the_count_again(breaker: CircuitBreaker) -> None:
    for _ in range(5):
        _fail(breaker, 2)
        breaker.note_success()

    assert breaker.state == "closed"


def test_failures_far_apart_do_not_open_it(breaker: CircuitBreaker, clock: Clock) -> None:
    for _ in range(5):
        _fail(breaker, 2)
        clock.now += 10

    assert breaker.state == "closed"


def test_an_open_breaker_admits_one_probe_at_a_time_and_nothing_else(
    breaker: CircuitBreaker, clock: Clock
) -> None:
    _fail(breaker, 3)
    assert not breaker.admit_probe()
    clock.now += 2

    assert [breaker.admit_probe() for _ in range(4)] == [True, False, False, False]
    assert breaker.state == "half_open"
    assert not breaker.admit()


def test_a_closed_breaker_needs_no_probe(breaker: CircuitBreaker) -> None:
    assert not breaker.admit_probe()


def test_a_probe_that_succeeds_closes_it_and_one_that_fails_waits_for_the_next(
    breaker: CircuitBreaker, clock: Clock
) -> None:
    _fail(breaker, 3)
    clock.now += 2
    assert breaker.admit_probe()
    breaker.note_failure()
    assert breaker.state == "open"
    clock.now += 1.9
    assert not breaker.admit_probe()
    clock.now += 0.1
    assert breaker.admit_probe()
    assert breaker.away_s == 4

    breaker.note_success()

    assert breaker.state == "closed"
    assert all(breaker.admit() for _ in range(10))


def test_a_probe_whose_outcome_never_comes_does_not_block_the_next(
    breaker: CircuitBreaker, clock: Clock
) -> None:
    _fail(breaker, 3)
    clock.now += 2
    assert breaker.admit_probe()
    clock.now += 2

    assert breaker.admit_probe()


def test_a_memory_that_was_away_is_given_up_again_at_its_next_failure(
    breaker: CircuitBreaker, clock: Clock
) -> None:
    _fail(breaker, 3)
    clock.now += 2
    assert breaker.admit_probe()
    breaker.note_success()
    assert breaker.suspicious

    _fail(breaker, 1)

    assert breaker.state == "open"


def test_a_memory_that_was_away_is_trusted_after_one_more_answer(
    breaker: CircuitBreaker, clock: Clock
) -> None:
    _fail(breaker, 3)
    clock.now += 2
    assert breaker.admit_probe()
    breaker.note_success()
    breaker.note_success()

    _fail(breaker, 2)

    assert breaker.state == "closed"


def test_calls_that_were_under_way_when_it_opened_do_not_put_the_probe_off(
    breaker: CircuitBreaker, clock: Clock
) -> None:
    _fail(breaker, 3)
    clock.now += 1.9
    breaker.note_failure()
    clock.now += 0.1

    assert breaker.admit_probe()


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 5)), max_size=60))
def test_whatever_happened_a_memory_that_answers_is_used_again_within_one_probe(
    history: list[tuple[bool, float]],
) -> None:
    clock = Clock()
    breaker = CircuitBreaker(failures=2, window_s=10, probe_every_s=2, clock=clock)
    for answered, wait in history:
        if breaker.admit() or breaker.admit_probe():
            breaker.note_success() if answered else breaker.note_failure()
        clock.now += wait
    clock.now += 2

    assert breaker.admit() or breaker.admit_probe()
    breaker.note_success()
    assert breaker.state == "closed"


async def test_while_open_calls_fail_at_once_without_reaching_the_memory(
    breaker: CircuitBreaker,
) -> None:
    memory = Memory([StoreUnavailable("away")] * 3)
    rpc = BreakingRpc(memory, breaker)
    for _ in range(10):
        with pytest.raises(StoreUnavailable):
            await rpc.call("open_turn", {}, None)

    assert memory.calls == 3


async def test_a_refusal_is_an_answer(breaker: CircuitBreaker) -> None:
    memory = Memory([AccessDenied("no")] * 5)
    for _ in range(5):
        with pytest.raises(AccessDenied):
            await BreakingRpc(memory, breaker).call("open_turn", {}, None)

    assert breaker.state == "closed"


async def test_a_probe_waits_less_than_a_call(breaker: CircuitBreaker, clock: Clock) -> None:
    rpc = BreakingRpc(Memory(hanging=True), breaker, hurried_s=0.01)
    _fail(breaker, 3)
    clock.now += 2

    async with asyncio.timeout(5):
        assert not await rpc.probe(PROBE)

    assert breaker.state == "open"


async def test_after_a_failure_the_next_calls_wait_less(breaker: CircuitBreaker) -> None:
    rpc = BreakingRpc(Memory(hanging=True), breaker, hurried_s=0.01)
    _fail(breaker, 1)

    async with asyncio.timeout(5):
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="longer than"):
                await rpc.call("open_turn", {}, None)

    assert breaker.state == "open"


async def test_an_answered_probe_closes_it(breaker: CircuitBreaker, clock: Clock) -> None:
    memory = Memory()
    rpc = BreakingRpc(memory, breaker)
    _fail(breaker, 3)
    assert not await rpc.probe(PROBE)
    clock.now += 2

    assert await rpc.probe(PROBE)
    assert await rpc.probe(PROBE)

    assert memory.calls == 1
    assert breaker.state == "closed"


async def test_coming_and_going_is_told_once_each(breaker: CircuitBreaker, clock: Clock) -> None:
    told = Told()
    rpc = BreakingRpc(Memory([StoreUnavailable("away")] * 3), breaker, watch=told)
    with structlog.testing.capture_logs() as lines:
        for _ in range(5):
            with pytest.raises(StoreUnavailable):
                await rpc.call("open_turn", {}, None)
        clock.now += 7
        assert await rpc.probe(PROBE)
        await rpc.call("open_turn", {}, None)

    assert [line["event"] for line in lines] == ["memory.away", "memory.back"]
    assert lines[1]["away_s"] == 7
    assert told.failures == ["StoreUnavailable"] * 3
    assert told.states == ["closed", "closed", "open", "half_open", "closed"]


async def test_a_probe_succeeds_when_each_of_its_calls_does(
    breaker: CircuitBreaker, clock: Clock
) -> None:
    memory = Memory(["answer", KeyRefused("check SUPABASE_JWT_SECRET")])
    rpc = BreakingRpc(memory, breaker)
    _fail(breaker, 3)
    clock.now += 2

    with structlog.testing.capture_logs() as lines:
        assert not await rpc.probe(PROBE * 2)

    assert (breaker.state, lines) == ("open", [])


async def test_a_key_that_is_refused_is_away_and_named(breaker: CircuitBreaker) -> None:
    refused = KeyRefused("open_turn: check SUPABASE_JWT_SECRET", code="PGRST301")
    told = Told()
    rpc = BreakingRpc(Memory([refused] * 3), breaker, watch=told)
    with structlog.testing.capture_logs() as lines:
        for _ in range(3):
            with pytest.raises(KeyRefused):
                await rpc.call("open_turn", {}, None)

    (line,) = lines
    assert (line["event"], line["error"], line["reason"]) == (
        "memory.away",
        "KeyRefused",
        "open_turn: check SUPABASE_JWT_SECRET",
    )
    assert told.failures == ["KeyRefused"] * 3


async def test_an_answer_to_a_call_from_before_does_not_bring_the_memory_back(
    breaker: CircuitBreaker,
) -> None:
    answers = asyncio.Event()

    class Slow(Memory):
        async def call(self, function: str, params: Mapping[str, object], context: object) -> str:
            if function == "slow":
                await answers.wait()
                return "answer"
            raise StoreUnavailable("away")

    rpc = BreakingRpc(Slow(), breaker)
    before = asyncio.create_task(rpc.call("slow", {}, None))
    await asyncio.sleep(0)
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            await rpc.call("open_turn", {}, None)
    answers.set()

    assert await before == "answer"
    assert breaker.state == "open"


class SlowRpc:
    """Answers `quick` at once and everything else never."""

    async def call(self, function: str, *_: object) -> str:
        if function != "quick":
            await asyncio.Event().wait()
        return function

    async def close(self) -> None:
        pass


async def _given_up_after(rpc: BreakingRpc) -> float:
    began = asyncio.get_running_loop().time()
    with pytest.raises(StoreUnavailable, match="took longer"):
        await rpc.call("slow", {}, None)
    return asyncio.get_running_loop().time() - began


async def test_of_a_memory_that_answers_nobody_nobody_waits_for_long() -> None:
    rpc = BreakingRpc(SlowRpc(), CircuitBreaker(failures=3), hurried_s=0.1)

    async with asyncio.timeout(3):
        took = await asyncio.gather(*(_given_up_after(rpc) for _ in range(4)))

    assert max(took) < 1
    assert not rpc.breaker.admit()


async def test_one_slow_call_is_waited_for_while_others_are_answered() -> None:
    rpc = BreakingRpc(SlowRpc(), CircuitBreaker(failures=3), hurried_s=0.1)

    slow = asyncio.create_task(_given_up_after(rpc))
    for _ in range(8):
        await asyncio.sleep(0.05)
        assert await rpc.call("quick", {}, None) == "quick"
    alone = not slow.done()
    slow.cancel()

    assert alone
    assert rpc.breaker.admit()


def test_one_lost_connection_counts_once_however_many_calls_it_ends() -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock=clock)
    for _ in range(20):
        breaker.note_failure(connection_lost=True)
    assert (breaker.state, breaker.failed_lately) == ("closed", 1)
    for _ in range(2):
        clock.now += 1
        breaker.note_failure(connection_lost=True)
    assert breaker.state == "open"
