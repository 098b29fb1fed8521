"""How many requests a model takes at the same time, learned from what it does with them. Pure.

There is no limit until the model shows one. A refusal with status 429 says that it holds no more
than what is under way, so the limit follows that at once. Answers that begin much later than usual
lower it gently. Each answer raises it, by a tenth with all that are under way. A minute without
trouble lifts it, for most providers count by the minute. A model that answers nobody has no limit:
its requests fail by their own time limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable

_KEPT_OF_REFUSED = 0.9
_KEPT_OF_LATE, _LEAST_LATE = 0.7, 8.0
_GROWTH = 0.1
_FORGOTTEN_S = 60.0
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 60.0
_LATE_S, _TIMES_USUAL, _USUAL_FOLLOWS = 10.0, 3.0, 0.05
_TAKEN_S = 5.0  # a refusal comes sooner


class RequestLimit:
    """The limit of one model. `clock` is monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._most = math.inf
        self._troubled_at = self._hopes_until = -math.inf
        self._usual_s: float | None = None
        self._pause_s = _SHORTEST_PAUSE_S

    def most(self, oldest_at: float | None) -> float:
        """How many may be under way now. `oldest_at`: when the oldest of those was sent."""
        lifted = self._clock() - self._troubled_at > _FORGOTTEN_S
        if self._most < math.inf and (lifted or not self._is_hopeful(oldest_at)):
            self._most = math.inf
        return self._most

    def answered(self, sent_at: float, in_flight: int, *, crowded: bool) -> None:
        """An answer has begun to what was sent then; `crowded`: others wait for their turn."""
        now = self._clock()
        after_s = now - sent_at
        if self._usual_s is not None and after_s > self._late_s and sent_at > self._troubled_at:
            self._lower(max(_LEAST_LATE, min(self._most, in_flight) * _KEPT_OF_LATE))
        elif crowded or in_flight >= self._most - 1:
            self._most += max(1.0, self._most * _GROWTH) / self._most
        self._learn(after_s)
        self._hopes_until, self._pause_s = now + self._late_s, _SHORTEST_PAUSE_S

    def refused(self, others: int, oldest_at: float | None) -> bool:
        """The model has too many requests, with `others` under way, the oldest sent at that time.
        Whether another attempt is worth the wait."""
        now = self._clock()
        if now - self._troubled_at > _FORGOTTEN_S:
            self._hopes_until = max(self._hopes_until, now + self._late_s)
        self._lower(max(1.0, others * _KEPT_OF_REFUSED))
        return self._is_hopeful(oldest_at)

    def pause_s(self, retry_after_s: float) -> float:
        """How long (s) nobody asks after a refusal; twice as long each time nobody is answered."""
        pause_s = min(max(retry_after_s, self._pause_s), _LONGEST_PAUSE_S)
        self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)
        return pause_s

    def _is_hopeful(self, oldest_at: float | None) -> bool:
        """Whether somebody was answered lately, or will be."""
        now = self._clock()
        held_s = 0.0 if oldest_at is None else now - oldest_at
        longest_s = math.inf if self._usual_s is None else self._late_s
        return now < self._hopes_until or _TAKEN_S < held_s < longest_s

    @property
    def _late_s(self) -> float:
        return max(_LATE_S, _TIMES_USUAL * (self._usual_s or 0.0))

    def _learn(self, after_s: float) -> None:
        """The shortest time until an answer begins, which follows longer ones slowly."""
        if self._usual_s is None or after_s < self._usual_s:
            self._usual_s = after_s
        else:
            self._usual_s += (after_s - self._usual_s) * _USUAL_FOLLOWS

    def _lower(self, most: float) -> None:
        self._troubled_at = self._clock()
        self._most = min(self._most, most)
