"""How long recall and storing take in a small and in a large table."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds."""

    p50: float
    p95: float


def latency(times_ms: Sequence[float]) -> Latency:
    """The percentiles of at least one measurement."""
    ordered = sorted(times_ms)
    return Latency(statistics.median(ordered), ordered[min(len(ordered) - 1, len(ordered) * 95 // 100)])


def measure_scale(server, messages, report):
    return []
