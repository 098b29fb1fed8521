"""Since when what a thread works on waits for its answer; all threads may have been busy."""

from __future__ import annotations

import time
from contextvars import ContextVar

_since: ContextVar[float] = ContextVar("since")


def came_at(moment: float) -> None:
    """What this thread begins with was there at `moment` (monotonic seconds)."""
    _since.set(moment)


def waits_since() -> float:
    """Since when (monotonic seconds); now, where nobody said."""
    return _since.get(time.monotonic())
