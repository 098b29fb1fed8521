"""The memory's state as numbers."""

from __future__ import annotations

from bot.process import metrics
from memory.fallback.breaker import MemoryWatch, State

_BREAKER = {"closed": 0, "half_open": 1, "open": 2}


class CountedMemory(MemoryWatch):
    """Counts into `bot.process.metrics`."""

    def state(self, state: State) -> None:
        metrics.MEMORY_BREAKER.set(_BREAKER[state])

    def failed(self, kind: str) -> None:
        metrics.MEMORY_FAILURES.labels(kind=kind).inc()

    def kept(self) -> None:
        metrics.TURNS_UNSTORED.inc()

    def written(self) -> None:
        metrics.TURNS_STORED_LATER.inc()

    def waiting(self, turns: int, oldest_s: float) -> None:
        metrics.UNSTORED.set(turns)
        metrics.UNSTORED_OLDEST_SECONDS.set(oldest_s)
