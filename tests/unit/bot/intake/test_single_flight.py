"""Many who ask while an answer is slow: one looks, few wait, nobody is left without an answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from bot.intake.health import SingleFlight


class Slow:
    """A look that takes until it is let go."""

    def __init__(self) -> None:
        self.looks = 0
        self.begun = threading.Event()
        self.go = threading.Event()
        self.now = 0.0

    def __call__(self) -> int:
        self.looks += 1
        self.begun.set()
        assert self.go.wait(10)
        return self.looks

    def clock(self) -> float:
        return self.now


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def flight(slow: Slow) -> SingleFlight[int]:
    return SingleFlight(slow, clock=slow.clock)


@pytest.fixture
def readers(slow: Slow) -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(20) as pool:
        yield pool
        slow.go.set()


def test_an_outcome_holds_for_a_second(slow: Slow, flight: SingleFlight[int]) -> None:
    slow.go.set()
    assert [flight.outcome() for _ in range(5)] == [1] * 5
    slow.now = 1.5
    assert flight.outcome() == 2


def test_who_asks_meanwhile_gets_the_last_outcome_at_once(
    slow: Slow, flight: SingleFlight[int], readers: ThreadPoolExecutor
) -> None:
    slow.go.set()
    flight.outcome()
    slow.now, slow.begun = 2.0, threading.Event()
    slow.go.clear()
    looking = readers.submit(flight.outcome)
    assert slow.begun.wait(10)

    assert [flight.outcome() for _ in range(150)] == [1] * 150
    slow.go.set()
    assert (looking.result(10), slow.looks) == (2, 2)


def test_at_the_first_look_a_few_wait_and_the_others_are_told_to_ask_again(
    slow: Slow, flight: SingleFlight[int], readers: ThreadPoolExecutor
) -> None:
    asking = [readers.submit(flight.outcome) for _ in range(20)]
    done = [future for future in asking if _ends(future)]
    assert len(done) == 16
    assert {future.result() for future in done} == {None}
    slow.go.set()
    assert [future.result(10) for future in asking if future not in done] == [1] * 4
    assert slow.looks == 1


def test_a_look_that_fails_leaves_the_next_one_free(slow: Slow) -> None:
    def broken() -> int:
        raise ValueError("broken")

    flight = SingleFlight(broken, clock=slow.clock)
    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            flight.outcome()


def test_a_look_that_never_ends_is_given_up(
    slow: Slow, flight: SingleFlight[int], readers: ThreadPoolExecutor
) -> None:
    readers.submit(flight.outcome)
    assert slow.begun.wait(10)
    slow.now, slow.begun = 31.0, threading.Event()
    readers.submit(flight.outcome)
    assert slow.begun.wait(10)


def _ends(future: object) -> bool:
    try:
        future.result(0.5)  # type: ignore[attr-defined]
    except TimeoutError:
        return False
    return True
