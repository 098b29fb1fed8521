"""The memory's state as numbers."""

from __future__ import annotations

from bot.process import metrics
from memory.fallback.spool import SpoolState
from memory.fallback.watch import MemoryWatch

_BREAKER = {"closed": 0, "half_open": 1, "open": 2}


class CountedMemory(MemoryWatch):
    """Counts into `bot.process.metrics`."""

    def state(self, state: str) -> None:
        metrics.MEMORY_BREAKER.set(_BREAKER[state])

    def failed(self, kind: str) -> None:
        metrics.MEMORY_FAILURES.labels(kind=kind).inc()

    def spooled(self) -> None:
        metrics.SPOOLED.inc()

    def drained(self, turns: int) -> None:
        metrics.DRAINED.inc(turns)

    def waits(self, state: SpoolState) -> None:
        metrics.SPOOL_WAITING.set(state.waiting)
        metrics.SPOOL_REFUSED.set(state.refused)
        metrics.SPOOL_OLDEST_SECONDS.set(state.oldest_s)
