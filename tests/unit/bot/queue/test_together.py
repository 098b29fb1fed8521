"""Calls that come while another is under way."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from bot.queue.inbox import GroupCommit
from lab.doubles.processes import eventually

LONG_S = 60.0


class Sent:
    """What was sent, in groups; the first call waits until it is let go."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.began, self.let_go = threading.Event(), threading.Event()

    def __call__(self, numbers: Sequence[int]) -> list[int | Exception]:
        self.groups.append(list(numbers))
        if len(self.groups) == 1:
            self.began.set()
            assert self.let_go.wait(LONG_S)
        return [ValueError(f"{n}") if n < 0 else 10 * n for n in numbers]


def sent_with_others(
    together: GroupCommit[int, int], sent: Sent, threads: ThreadPoolExecutor, numbers: Sequence[int]
) -> list[Future[int]]:
    """The calls of `numbers`, one after the other; those after the first wait for it."""
    calls = []
    for n in numbers:
        calls.append(threads.submit(together.call, n))
        assert sent.began.wait(LONG_S)
        eventually(lambda: len(together._waiting) == len(calls) - 1, what="it waits")
    return calls


def test_a_call_that_is_alone_goes_at_once() -> None:
    sent = Sent()
    sent.let_go.set()

    assert [GroupCommit(sent).call(n) for n in (1, 2)] == [10, 20]
    assert sent.groups == [[1], [2]]


def test_calls_that_wait_go_together_in_the_order_in_which_they_came() -> None:
    sent = Sent()
    together = GroupCommit(sent, patience_s=LONG_S)
    with ThreadPoolExecutor() as threads:
        calls = sent_with_others(together, sent, threads, (1, 2, 3, 4))
        sent.let_go.set()

        assert [call.result() for call in calls] == [10, 20, 30, 40]
    assert sent.groups == [[1], [2, 3, 4]]


def test_an_error_is_raised_to_whom_it_belongs() -> None:
    sent = Sent()
    together = GroupCommit(sent, patience_s=LONG_S)
    with ThreadPoolExecutor() as threads:
        calls = sent_with_others(together, sent, threads, (1, -2, 3))
        sent.let_go.set()

        assert [call.exception() is None for call in calls] == [True, False, True]


def test_an_error_of_all_is_raised_to_all_and_the_next_call_goes() -> None:
    failing = threading.Event()

    def send(numbers: Sequence[int]) -> list[int | Exception]:
        if not failing.is_set():
            failing.set()
            raise OSError("away")
        return list(numbers)

    together = GroupCommit(send)
    with pytest.raises(OSError, match="away"):
        together.call(1)
    assert together.call(2) == 2


def test_a_call_that_hangs_keeps_nobody_waiting() -> None:
    sent = Sent()
    together = GroupCommit(sent, patience_s=0.01)
    with ThreadPoolExecutor() as threads:
        hanging = threads.submit(together.call, 1)
        assert sent.began.wait(LONG_S)

        assert together.call(2) == 20
        assert not hanging.done()
        sent.let_go.set()
        assert hanging.result() == 10


def test_whoever_calls_and_however_many_each_has_its_own_outcome() -> None:
    groups: list[int] = []

    def tenfold(numbers: Sequence[int]) -> list[int]:
        groups.append(len(numbers))
        return [10 * n for n in numbers]

    together = GroupCommit[int, int](tenfold, patience_s=0.0001)  # now and then one goes beside
    with ThreadPoolExecutor(16) as threads:
        assert list(threads.map(together.call, range(2000))) == [10 * n for n in range(2000)]
    assert sum(groups) == 2000
