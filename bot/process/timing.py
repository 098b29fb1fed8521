"""How long the stages of a turn take, for the metrics and for the turn's log line."""

from __future__ import annotations

import time
from contextvars import ContextVar

from bot.process import metrics

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
    notes = _noted.get()
    if notes is not None:
        notes.update(fields)


def keep(**ids: object) -> None:
    """Keeps for the record of the turn what it is made of: ids and counts, no words."""
    kept_values = _kept.get()
    if kept_values is not None:
        kept_values.update(ids)


def kept() -> dict[str, object]:
    """What was kept since `begin`."""
    return dict(_kept.get() or {})


class stage:  # noqa: N801  read as what it does, like `contextlib.suppress`
    """Counts the time of the block as part of `name`, failures included."""

    __slots__ = ("_began", "_name")

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        seconds = time.perf_counter() - self._began
        metrics.STAGE_SECONDS.labels(stage=self._name).observe(seconds)
        if (seconds_by_stage := _spent.get()) is not None:
            seconds_by_stage[self._name] = seconds_by_stage.get(self._name, 0.0) + seconds


def fields() -> dict[str, object]:
    """`{stage}_ms` of every stage since `begin`, and what was noted."""
    seconds_by_stage = {
        f"{name}_ms": round(s * 1000, 1) for name, s in (_spent.get() or {}).items()
    }
    return {**seconds_by_stage, **(_noted.get() or {})}
