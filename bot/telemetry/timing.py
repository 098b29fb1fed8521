"""How long the stages of a turn take, for the metrics and for the turn's log line."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar

from bot.telemetry import metrics

_spent: ContextVar[dict[str, float] | None] = ContextVar("spent", default=None)
_kept: ContextVar[dict[str, object] | None] = ContextVar("kept", default=None)
_noted: ContextVar[dict[str, object] | None] = ContextVar("noted", default=None)


def begin() -> None:
    """Starts counting for the task that runs now."""
    _spent.set({})
    _noted.set({})
    _kept.set({})


def note(**fields: object) -> None:
    """Keeps fields for the turn's log line: numbers and names, no message text."""
    noted = _noted.get()
    if noted is not None:
        noted.update(fields)


def keep(**ids: object) -> None:
    """Keeps for the record of the turn what it is made of: ids and counts, no words."""
    kept = _kept.get()
    if kept is not None:
        kept.update(ids)


def kept() -> dict[str, object]:
    """What was kept since `begin`."""
    return dict(_kept.get() or {})


@contextlib.contextmanager
def stage(name: str) -> Iterator[None]:
    """Counts the time of the block as part of `name`, failures included."""
    started = time.perf_counter()
    try:
        yield
    finally:
        seconds = time.perf_counter() - started
        metrics.STAGE_SECONDS.labels(stage=name).observe(seconds)
        spent = _spent.get()
        if spent is not None:
            spent[name] = spent.get(name, 0.0) + seconds


def fields() -> dict[str, object]:
    """`{stage}_ms` of every stage since `begin`, and what was noted."""
    spent = {f"{name}_ms": round(s * 1000, 1) for name, s in (_spent.get() or {}).items()}
    return {**spent, **(_noted.get() or {})}
