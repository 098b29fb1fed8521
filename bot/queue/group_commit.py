"""Makes concurrent calls together in one transaction, and notes since when a thread’s work has
waited.

Whoever comes first makes the call of those that wait, in its own thread; a call that is alone waits
for nobody. Only who has an outcome is woken, and who makes the next call: threads share one
interpreter, and each that wakes for nothing keeps the others from running."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")
_PATIENCE_S = 0.05

_since: ContextVar[float] = ContextVar("since")


def _closed_lock() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


@dataclass(eq=False, slots=True)
class _Call(Generic[T, R]):
    """`wake_lock` opens when there is an outcome, or when this call is to make the call of all in
    `makes`."""

    item: T
    makes: Sequence[_Call[T, R]] = ()
    outcome: list[R | Exception] = field(default_factory=list)
    wake_lock: threading.Lock = field(default_factory=_closed_lock)

    def result(self) -> R:
        outcome = self.outcome[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


class GroupCommit(Generic[T, R]):
    """`send` is given what waits, in the order in which it came, and returns or raises; for each an
    outcome, which is returned or raised to whom it belongs.

    A call that takes longer than `patience_s` keeps nobody waiting: the next goes beside it.
    """

    def __init__(
        self,
        send: Callable[[Sequence[T]], Sequence[R | Exception]],
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self._send = send
        self._patience_s = patience_s
        self._changing = threading.Lock()
        self._waiting: list[_Call[T, R]] = []
        self._under_way = 0

    def call(self, item: T) -> R:
        """The outcome for `item`, which was sent alone or with others."""
        mine: _Call[T, R] = _Call(item)
        with self._changing:
            self._waiting.append(mine)
            if not self._under_way:
                self._choose(mine)
        if not mine.makes and not mine.wake_lock.acquire(timeout=self._patience_s):
            with self._changing:
                if mine in self._waiting:
                    self._choose(mine)
            if not mine.makes:
                mine.wake_lock.acquire()
        if mine.makes:
            self._make(mine)
        return mine.result()

    def _choose(self, maker: _Call[T, R]) -> None:
        """It makes the call of all that wait. To be called while `_changing`."""
        maker.makes, self._waiting = self._waiting, []
        self._under_way += 1

    def _make(self, mine: _Call[T, R]) -> None:
        calls = mine.makes
        outcomes: Sequence[R | Exception] = [RuntimeError("the call was given up")] * len(calls)
        try:
            outcomes = self._send([call.item for call in calls])
        except Exception as exc:
            outcomes = [exc] * len(calls)
            raise
        finally:
            waiting_calls = [call for call in calls if call is not mine]
            for call, outcome in zip(calls, outcomes, strict=True):
                call.outcome.append(outcome)
            with self._changing:
                self._under_way -= 1
                if self._waiting and not self._under_way:
                    waiting_calls.insert(0, self._waiting[0])
                    self._choose(self._waiting[0])
            for call in waiting_calls:
                call.wake_lock.release()


def set_waiting_since(moment: float) -> None:
    """What this thread begins with was there at `moment` (monotonic seconds)."""
    _since.set(moment)


def waiting_since() -> float:
    """Since when (monotonic seconds); now, where nobody said."""
    return _since.get(time.monotonic())
