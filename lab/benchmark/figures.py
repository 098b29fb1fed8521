"""What was measured, against its bar: pure, from samples to figures and what stands beside them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Verdict = Literal["", "ok", "miss"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the result.

    `bar` is the most that is allowed, or with `at_least` the least; None: for information only.
    `runs`: the values of the runs whose median `value` is, where there were several.
    """

    name: str
    value: float
    unit: str = ""
    bar: float | None = None
    at_least: bool = False
    note: str = ""
    streaming: bool = False
    runs: tuple[float, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Whether the bar is met; the value as measured counts, not as shown."""
        if self.bar is None:
            return ""
        met = self.value >= self.bar if self.at_least else self.value <= self.bar
        return "ok" if met else "miss"

    @property
    def title(self) -> str:
        """The name, which says whether replies were streamed."""
        return f"{self.name}, streaming" if self.streaming else self.name


@dataclass(frozen=True, slots=True)
class FailedMeasure:
    """A measure that could not be taken, and why."""

    measure: str
    reason: str

    @classmethod
    def by(cls, measure: str, exc: BaseException) -> FailedMeasure:
        """Names the cause, the first where several people failed at once."""
        while isinstance(exc, BaseExceptionGroup):
            exc = exc.exceptions[0]
        return cls(measure, f"{type(exc).__name__}: {exc}")


@dataclass(frozen=True, slots=True)
class Compared:
    """The same figure of this version and of another one; either may lack it."""

    figure: Figure
    against: Figure | None

    @property
    def ratio(self) -> float:
        """This ÷ the other; nan where there is none."""
        if self.against is None or not self.against.value:
            return math.nan
        return self.figure.value / self.against.value


def percentile(samples: Sequence[float], share: float) -> float:
    """The nearest-rank percentile, `share` in (0, 1]; nan without samples."""
    if not samples:
        return math.nan
    rank = math.ceil(share * len(samples))
    return sorted(samples)[max(rank, 1) - 1]


def combined(figures: Iterable[Figure]) -> list[Figure]:
    """One figure for all runs of the same: their median, with the note of the run next to it.

    In the order of the first run; a streamed figure follows the one that is not.
    """
    groups: dict[tuple[str, bool], list[Figure]] = {}
    for figure in figures:
        groups.setdefault((figure.name, figure.streaming), []).append(figure)
    order = {name: number for number, name in enumerate(dict.fromkeys(n for n, _ in groups))}
    return [_of_runs(groups[key]) for key in sorted(groups, key=lambda key: (order[key[0]], key))]


def compared(these: Iterable[Figure], others: Iterable[Figure]) -> list[Compared]:
    """Side by side, in the order of `these`."""
    known = {figure.title: figure for figure in others}
    return [Compared(figure, known.get(figure.title)) for figure in these]


def _of_runs(same: Sequence[Figure]) -> Figure:
    if len(same) == 1:
        return same[0]
    values = tuple(figure.value for figure in same)
    middle = statistics.median(values)
    nearest = min(same, key=lambda figure: abs(figure.value - middle))
    return replace(nearest, value=middle, runs=values)
