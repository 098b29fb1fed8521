"""Figures as people and programs read them: the table and the JSON. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table

from lab.benchmark.figures import Compared, FailedMeasure, Figure


def shown(value: float) -> str:
    """Three significant digits, whole numbers from 100 on."""
    if math.isnan(value):
        return "–"
    if value == 0 or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def table(figures: Sequence[Figure]) -> Table:
    """The figures as a table for the terminal; a missed bar says so in words."""
    drawn = _drawn("measure", "value", "bar", "", "note")
    for figure in figures:
        drawn.add_row(figure.title, _amount(figure), _bar(figure), _word(figure), figure.note)
    return drawn


def comparison(rows: Sequence[Compared], this: str, against: str) -> Table:
    """Two versions side by side; bars, verdicts and notes are of `this`, ratios this ÷ against."""
    drawn = _drawn("measure", against, this, "ratio", "bar", "", f"note on {this}")
    for row in rows:
        figure = row.figure
        other = _amount(row.against) if row.against else ""
        ratio = "" if math.isnan(row.ratio) else f"{shown(row.ratio)} ×"
        drawn.add_row(
            *(figure.title, other, _amount(figure), ratio),
            *(_bar(figure), _word(figure), figure.note),
        )
    return drawn


def report(
    machine: Mapping[str, object],
    figures: Sequence[Figure],
    failed: Sequence[FailedMeasure],
    rows: Sequence[Compared] = (),
) -> dict[str, Any]:
    """The same for `--json`; a value that does not exist is null. `rows` adds the other version."""
    others = {row.figure.title: row for row in rows}
    return {
        "machine": dict(machine),
        "figures": [_entry(figure) | _beside(others.get(figure.title)) for figure in figures],
        "failed": [{"measure": one.measure, "reason": one.reason} for one in failed],
    }


def _drawn(*headings: str) -> Table:
    drawn = Table(box=box.SIMPLE_HEAD)
    for number, heading in enumerate(headings):
        words = number == 0 or not heading or heading.startswith("note")
        drawn.add_column(heading, justify="left" if words else "right", no_wrap=number == 0)
    return drawn


def _entry(figure: Figure) -> dict[str, Any]:
    return {
        "name": figure.name,
        "streaming": figure.streaming,
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
