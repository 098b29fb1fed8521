"""Refused requests in the log and the metrics: counted by reason, at most one line a minute for
each, because anybody can send requests and must not fill the disk."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bot.process import metrics
from bot.process.lines import say

_EVERY_S = 60.0
_MOST_REASONS = 50
_OTHER = "other"


@dataclass
class _Count:
    said_at_s: float
    requests: int = 0


@dataclass
class RefusalCounts:
    """Counts from any thread. `clock` is monotonic seconds; `write` takes a line's fields."""

    clock: Callable[[], float] = time.monotonic
    write: Callable[..., None] = say
    _counts: dict[tuple[str, str], _Count] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, event: str, reason: str) -> None:
        """Counts one request. The first of a reason is logged at once."""
        with self._lock:
            if (event, reason) not in self._counts and len(self._counts) >= _MOST_REASONS:
                reason = _OTHER
            never = self.clock() - _EVERY_S
            self._counts.setdefault((event, reason), _Count(never)).requests += 1
        metrics.REFUSED.labels(reason=reason).inc()
        self.report()

    def report(self) -> None:
        """Logs the counts that are not logged yet, each a minute after its last line."""
        now = self.clock()
        with self._lock:
            due = [
                (key, one.requests)
                for key, one in self._counts.items()
                if one.requests and now - one.said_at_s >= _EVERY_S
            ]
            for key, _ in due:
                self._counts[key] = _Count(now)
        for (event, reason), requests in due:
            self.write(event, level="warning", reason=reason, requests=requests)


REFUSALS = RefusalCounts()
