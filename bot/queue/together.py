"""Calls that come while another is under way wait for it and go together: one transaction for all.

Whoever comes first makes the call of those that wait, in its own thread; a call that is alone waits
for nobody.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_PATIENCE_S = 0.05


@dataclass(eq=False, slots=True)
class _Call(Generic[T, R]):
    item: T
    taken: bool = False
    outcome: list[R | Exception] = field(default_factory=list)

    def result(self) -> R:
        found = self.outcome[0]
        if isinstance(found, Exception):
            raise found
        return found


class Together(Generic[T, R]):
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
        self._changed = threading.Condition()
        self._waiting: list[_Call[T, R]] = []
        self._under_way = 0

    def call(self, item: T) -> R:
        """The outcome for `item`, which was sent alone or with others."""
        mine: _Call[T, R] = _Call(item)
        with self._changed:
            self._waiting.append(mine)
            self._changed.wait_for(lambda: mine.taken or not self._under_way, self._patience_s)
            if mine.taken:
                self._changed.wait_for(lambda: mine.outcome)
                return mine.result()
            calls = self._take()
        self._make(calls)
        return mine.result()

    def _take(self) -> list[_Call[T, R]]:
        calls, self._waiting = self._waiting, []
        for call in calls:
            call.taken = True
        self._under_way += 1
        return calls

    def _make(self, calls: Sequence[_Call[T, R]]) -> None:
        outcomes: Sequence[R | Exception] = [RuntimeError("the call was given up")] * len(calls)
        try:
            outcomes = self._send([call.item for call in calls])
        except Exception as exc:
            outcomes = [exc] * len(calls)
            raise
        finally:
            with self._changed:
                for call, outcome in zip(calls, outcomes, strict=True):
                    call.outcome.append(outcome)
                self._under_way -= 1
                self._changed.notify_all()
