"""Sliding-window limits: so many calls in so many seconds, for each key."""

from collections import deque
from collections.abc import Callable


class Limiter:
    """Counts calls per key. Not thread-safe; the platform's lock guards it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._calls: dict[tuple[str, str], deque[float]] = {}

    def allow(self, kind: str, key: str, limit: int, window_s: float = 1.0) -> bool:
        """Count one call; False when `limit` calls already lie within the window."""
        now = self._clock()
        calls = self._calls.setdefault((kind, key), deque())
        while calls and calls[0] <= now - window_s:
            calls.popleft()
        if len(calls) >= limit:
            return False
        calls.append(now)
        return True
