"""Cells of sheets and fields of Bases as text. Pure.

Source: Feishu, sheets-v2 values, and bitable-v1 “Record data structure”.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any

DATES = frozenset({5, 1001, 1002})  # types of fields whose numbers are ms since the epoch
_LONGEST_CELL = 500


def row_text(cells: Sequence[str]) -> str:
    """A row as a line of cells; trailing empty ones are left out."""
    return " | ".join(cells).rstrip(" |")


def sheet_cell(value: Any) -> str:
    """A cell of a sheet: text, number, or a list of parts such as links and mentions."""
    return _line(_text(value))


def base_cell(value: Any, kind: int, zone: tzinfo = UTC) -> str:
    """The value of a record's field of type `kind`."""
    if kind in DATES and isinstance(value, int | float) and not isinstance(value, bool):
        return _date(value, zone)
    return _line(_text(value))


def column_name(number: int) -> str:
    """The letters of a column, counted from 1: 27 is AA."""
    letters = ""
    while number > 0:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list):
        parts = [_text(one) for one in value]
        runs = all(isinstance(one, dict) and "text" in one for one in value)
        return ("" if runs else ", ").join(parts)
    if isinstance(value, dict):
        return _of_object(value)
    return str(value)


def _of_object(value: dict[str, Any]) -> str:
    """A person, a link, a place, a formula with its value; what else there is stays out."""
    for name in ("text", "name", "full_address", "fileName"):
        if isinstance(value.get(name), str) and value[name]:
            return str(value[name])
    if "value" in value:
        return _text(value["value"])
    return ""


def _line(text: str) -> str:
    return " ".join(text.split()).replace("|", "/")[:_LONGEST_CELL]


def _date(ms: float, zone: tzinfo) -> str:
    """Such as 2026-03-03 09:30, without a time at midnight."""
    try:
        at = datetime.fromtimestamp(ms / 1000, zone)
    except (ValueError, OverflowError, OSError):
        return str(ms)
    return at.strftime("%Y-%m-%d" if (at.hour, at.minute) == (0, 0) else "%Y-%m-%d %H:%M")
