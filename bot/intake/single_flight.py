"""One look at a time, whoever asks: many who ask must not become many who wait.

Each reader of a slow answer holds a thread, and the webhook has only so many.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

_KEPT_S = 1.0
_STILL_GOOD_S = 30.0
_WAITING = 3
_LOST_S = 30.0


class SingleFlight(Generic[T]):
    """`look` is called by one thread at a time, and its outcome holds for `_KEPT_S`.

    Who asks meanwhile gets the last outcome; where there is none of the last `_STILL_GOOD_S`, a few
    wait for the one that is coming and the others get None. `clock` is monotonic seconds.
    """

    def __init__(
        self, look: Callable[[], T], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._look = look
        self._clock = clock
        self._changed = threading.Condition()
        self._kept: tuple[float, T] | None = None
        self._began: float | None = None
        self._waiting = 0

    def outcome(self) -> T | None:
        """The present state as far as it is known. Raises what `look` raises to who called it."""
        with self._changed:
            if (recent := self._younger_than(_KEPT_S)) is not None:
                return recent
            if self._began is not None and self._clock() - self._began < _LOST_S:
                return self._younger_than(_STILL_GOOD_S) or self._await()
            began = self._began = self._clock()
        return self._fly(began)

    def _fly(self, began: float) -> T:
        outcome: T | None = None
        try:
            outcome = self._look()
            return outcome
        finally:
            with self._changed:
                if outcome is not None:
                    self._kept = (self._clock(), outcome)
                if self._began == began:
                    self._began = None
                self._changed.notify_all()

    def _await(self) -> T | None:
        if self._waiting >= _WAITING:
            return None
        self._waiting += 1
        try:
            self._changed.wait_for(lambda: self._began is None, _LOST_S)
        finally:
            self._waiting -= 1
        return self._younger_than(_STILL_GOOD_S)

    def _younger_than(self, seconds: float) -> T | None:
        if self._kept is None or self._clock() - self._kept[0] > seconds:
            return None
        return self._kept[1]
