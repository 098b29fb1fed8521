"""Measured figures: their bars, the comparison with another version, and the tables."""

from __future__ import annotations

import datetime
import json
import math
import os
import platform
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from rich import box
from rich.console import Console
from rich.table import Table

Verdict = Literal["", "ok", "miss"]
_PAGE_WIDTH = 180  # of a file or a pipe, in characters


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of a result.

    `bar` is the allowed maximum, or the required minimum with `at_least`. Without a bar the figure
    is for information only. `runs` holds the values whose median is `value`.
    """

    name: str
    value: float
    unit: str = ""
    bar: float | None = None
    at_least: bool = False
    note: str = ""
    runs: tuple[float, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Compares the measured value, not the rounded one."""
        if self.bar is None:
            return ""
        met = self.value >= self.bar if self.at_least else self.value <= self.bar
        return "ok" if met else "miss"


@dataclass(frozen=True, slots=True)
class FailedMeasure:
    """A measure that could not be taken, and the reason."""

    measure: str
    reason: str

    @classmethod
    def by(cls, measure: str, exc: BaseException) -> FailedMeasure:
        """Names the cause; of a group of exceptions, the first."""
        while isinstance(exc, BaseExceptionGroup):
            exc = exc.exceptions[0]
        return cls(measure, f"{type(exc).__name__}: {exc}")


@dataclass(frozen=True, slots=True)
class Compared:
    """The same figure of this version and of another; `against` is None if that one lacks it."""

    figure: Figure
    against: Figure | None

    @property
    def ratio(self) -> float:
        """This ÷ the other, or nan without another."""
        if self.against is None or not self.against.value:
            return math.nan
        return self.figure.value / self.against.value


@dataclass
class Results:
    """Everything that a command measured. `others` are the figures of the compared version."""

    figures: list[Figure] = field(default_factory=list)
    others: list[Figure] = field(default_factory=list)
    failed: list[FailedMeasure] = field(default_factory=list)
    conditions: dict[str, object] = field(default_factory=dict)

    def show(self, *, as_json: bool = False, this: str = "this", against: str = "") -> int:
        """Prints the results. Returns 1 if a measure failed, else 0."""
        these, others = combined(self.figures), combined(self.others)
        rows = compared(these, others) if others else ()
        if as_json:
            document = report(self.conditions, these, self.failed, rows)
            print(json.dumps(document, ensure_ascii=False, indent=2))
        else:
            drawn = comparison(rows, this, against) if rows else table(these)
            _print(self.conditions, drawn, these, self.failed)
        return 1 if self.failed else 0


def machine() -> dict[str, object]:
    """Describes this machine; `load` is its load average over the last minute."""
    return {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
        "cores": os.cpu_count() or 0,
        "cpu": _cpu_model(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
    }


def percentile(samples: Sequence[float], share: float) -> float:
    """Returns the nearest-rank percentile, `share` in (0, 1]; nan without samples."""
    if not samples:
        return math.nan
    rank = math.ceil(share * len(samples))
    return sorted(samples)[max(rank, 1) - 1]


def combined(figures: Iterable[Figure]) -> list[Figure]:
    """Merges the runs of each figure into their median, with the note of the run closest to it."""
    groups: dict[str, list[Figure]] = {}
    for figure in figures:
        groups.setdefault(figure.name, []).append(figure)
    return [_median(same) for same in groups.values()]


def compared(these: Iterable[Figure], others: Iterable[Figure]) -> list[Compared]:
    """Pairs figures of the same name, in the order of `these`."""
    known = {figure.name: figure for figure in others}
    return [Compared(figure, known.get(figure.name)) for figure in these]


def shown(value: float) -> str:
    """Formats three significant digits, and whole numbers from 100 on."""
    if math.isnan(value):
        return "–"
    if value == 0 or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def table(figures: Sequence[Figure]) -> Table:
    """Draws the figures for a terminal; a missed bar is marked in words."""
    drawn = _drawn("measure", "value", "bar", "", "note")
    for figure in figures:
        drawn.add_row(figure.name, _amount(figure), _bar(figure), _word(figure), figure.note)
    return drawn


def comparison(rows: Sequence[Compared], this: str, against: str) -> Table:
    """Draws two versions side by side; bars and notes are those of `this`."""
    drawn = _drawn("measure", against, this, "ratio", "bar", "", f"note on {this}")
    for row in rows:
        figure = row.figure
        other = _amount(row.against) if row.against else ""
        ratio = "" if math.isnan(row.ratio) else f"{shown(row.ratio)} ×"
        drawn.add_row(
            *(figure.name, other, _amount(figure), ratio),
            *(_bar(figure), _word(figure), figure.note),
        )
    return drawn


def report(
    conditions: Mapping[str, object],
    figures: Sequence[Figure],
    failed: Sequence[FailedMeasure],
    rows: Sequence[Compared] = (),
) -> dict[str, Any]:
    """Builds the document of `--json`; a value that does not exist is null."""
    others = {row.figure.name: row for row in rows}
    return {
        "machine": dict(conditions),
        "figures": [_entry(figure) | _beside(others.get(figure.name)) for figure in figures],
        "failed": [{"measure": one.measure, "reason": one.reason} for one in failed],
    }


def _print(
    conditions: Mapping[str, object],
    drawn: Table,
    figures: Sequence[Figure],
    failed: Sequence[FailedMeasure],
) -> None:
    console = Console(width=None if sys.stdout.isatty() else _PAGE_WIDTH)
    console.print(", ".join(f"{name} {value}" for name, value in conditions.items()), markup=False)
    console.print(drawn)
    for one in failed:
        console.print(f"not measured: {one.measure}: {one.reason}", markup=False)
    misses = [figure.name for figure in figures if figure.verdict == "miss"]
    console.print(f"missed: {'; '.join(misses)}" if misses else "every bar is met", markup=False)


def _median(same: Sequence[Figure]) -> Figure:
    if len(same) == 1:
        return same[0]
    values = tuple(figure.value for figure in same)
    middle = statistics.median(values)
    nearest = min(same, key=lambda figure: abs(figure.value - middle))
    return replace(nearest, value=middle, runs=values)


def _drawn(*headings: str) -> Table:
    drawn = Table(box=box.SIMPLE_HEAD)
    for number, heading in enumerate(headings):
        words = number == 0 or not heading or heading.startswith("note")
        drawn.add_column(heading, justify="left" if words else "right", no_wrap=number == 0)
    return drawn


def _entry(figure: Figure) -> dict[str, Any]:
    return {
        "name": figure.name,
        "value": _number(figure.value),
        "unit": figure.unit,
        "bar": figure.bar,
        "at_least": figure.at_least,
        "verdict": figure.verdict,
        "note": figure.note,
        "runs": [_number(value) for value in figure.runs],
    }


def _beside(row: Compared | None) -> dict[str, Any]:
    if row is None:
        return {}
    against = None if row.against is None else _entry(row.against)
    return {"against": against, "ratio": _number(row.ratio)}


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 4)


def _amount(figure: Figure) -> str:
    return f"{shown(figure.value)} {figure.unit}".rstrip()


def _word(figure: Figure) -> str:
    return "[bold red]MISS[/]" if figure.verdict == "miss" else figure.verdict


def _bar(figure: Figure) -> str:
    if figure.bar is None:
        return ""
    return f"{'≥' if figure.at_least else '≤'} {figure.bar:g} {figure.unit}".rstrip()


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
