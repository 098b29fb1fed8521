"""What was measured, against its bar: pure, from samples to the table and the JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rich import box
from rich.table import Table

Verdict = Literal["", "ok", "miss"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the result.

    `bar` is the most that is allowed, or with `at_least` the least; None: for information only.
    """

    name: str
    value: float
    unit: str = ""
    bar: float | None = None
    at_least: bool = False
    note: str = ""

    @property
    def verdict(self) -> Verdict:
        """Whether the bar is met; the value as measured counts, not as shown."""
        if self.bar is None:
            return ""
        met = self.value >= self.bar if self.at_least else self.value <= self.bar
        return "ok" if met else "miss"


@dataclass(frozen=True, slots=True)
class Failed:
    """A measure that could not be taken, and why."""

    measure: str
    reason: str


def percentile(samples: Sequence[float], share: float) -> float:
    """The nearest-rank percentile, `share` in (0, 1]; nan without samples."""
    if not samples:
        return math.nan
    rank = math.ceil(share * len(samples))
    return sorted(samples)[max(rank, 1) - 1]


def shown(value: float) -> str:
    """Three significant digits, whole numbers from 100 on."""
    if math.isnan(value):
        return "–"
    if value == 0 or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def table(figures: Sequence[Figure]) -> Table:
    """The figures as a table for the terminal; a missed bar says so in words."""
    drawn = Table(box=box.SIMPLE_HEAD)
    for heading in ("measure", "value", "bar", "", "note"):
        drawn.add_column(heading, justify="right" if heading in ("value", "bar") else "left")
    for figure in figures:
        drawn.add_row(
            figure.name,
            f"{shown(figure.value)} {figure.unit}".rstrip(),
            _bar(figure),
            "[bold red]MISS[/]" if figure.verdict == "miss" else figure.verdict,
            figure.note,
        )
    return drawn


def report(
    machine: Mapping[str, object], figures: Sequence[Figure], failed: Sequence[Failed]
) -> dict[str, Any]:
    """The same for `--json`; a value that does not exist is null."""
    return {
        "machine": dict(machine),
        "figures": [
            {
                "name": figure.name,
                "value": None if math.isnan(figure.value) else round(figure.value, 4),
                "unit": figure.unit,
                "bar": figure.bar,
                "at_least": figure.at_least,
                "verdict": figure.verdict,
                "note": figure.note,
            }
            for figure in figures
        ],
        "failed": [{"measure": one.measure, "reason": one.reason} for one in failed],
    }


def _bar(figure: Figure) -> str:
    if figure.bar is None:
        return ""
    return f"{'≥' if figure.at_least else '≤'} {figure.bar:g} {figure.unit}".rstrip()
