"""Turns exported Markdown, cells of sheets and fields of Bases into readable text. Pure.

Source: Feishu, “Get document content” (docs/v1/content), where tables and columns come as HTML and
special characters with a backslash; sheets-v2 values; bitable-v1 “Record data structure”."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from html import unescape
from html.parser import HTMLParser
from typing import Any

from bot.documents.document import MOST_BYTES, MOST_TABLES, Cut, Section
from bot.feishu.documents import BaseField
from bot.feishu.fields import as_dict
from bot.files.number_formats import shown

_HEADING = re.compile(r"(#{1,9}) +(.+)")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_TABLE = re.compile(r"<table\b.*?(?:</table\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"(?<!\\)</?[a-zA-Z][^<>]{0,300}>")

# The parser of HTML looks for the end of an open tag again and again.
_NO_TAG = re.compile(r"<(?!/?[a-zA-Z][^<>]{0,300}>)")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_BLANK = re.compile(r"\n{3,}")
_LONGEST_TITLE = 120

_DIGIT = re.compile("[0#]")
_CURRENCIES = {"CNY": "¥", "JPY": "¥", "USD": "$", "EUR": "€", "GBP": "£"}
DATES = frozenset({5, 1001, 1002})  # types of fields whose numbers are ms since the epoch
_LONGEST_CELL = 500


def sections_of(markdown: str) -> tuple[list[Section], list[Cut]]:
    """Its sections by heading, and what was left out of them."""
    text, cuts = _within(markdown)
    text, tables = _with_rows(text)
    if tables > MOST_TABLES:
        cuts.append("tables")
    sections: list[Section] = []
    title, level, lines = "", 0, list[str]()
    for line, is_code in _lines(text):
        heading = None if is_code else _HEADING.fullmatch(line.rstrip())
        if heading is None:
            lines.append(line if is_code else _plain(line))
            continue
        sections.append(Section(title, level, _join_lines(lines)))
        title, level, lines = _plain(heading[2])[:_LONGEST_TITLE], len(heading[1]), []
    sections.append(Section(title, level, _join_lines(lines)))
    return [one for one in sections if one.title or one.text], cuts


def _within(markdown: str) -> tuple[str, list[Cut]]:
    """The first five megabytes."""
    data = markdown.encode()
    if len(data) <= MOST_BYTES:
        return markdown, []
    return data[:MOST_BYTES].decode(errors="ignore"), ["bytes"]


def _with_rows(text: str) -> tuple[str, int]:
    """Each table as lines `a | b`, the first two hundred; and how many there are."""
    count = 0

    def rows(match: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return f"\n{_rows(match[0])}\n" if count <= MOST_TABLES else "\n"

    return _TABLE.sub(rows, text), count


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is code."""
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        is_code = bool(fence or mark)
        if mark and not fence:
            fence = mark[1]
        elif mark and fence == mark[1]:
            fence = ""
        yield line, is_code


def _plain(line: str) -> str:
    return unescape(_ESCAPE.sub(r"\1", _TAG.sub("", line))).rstrip()


def _join_lines(lines: list[str]) -> str:
    return _BLANK.sub("\n\n", "\n".join(lines)).strip("\n")


class _Rows(HTMLParser):
    """The cells of a table, row by row; a table within a cell becomes part of its text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.rows: list[list[str]] = []
        self._depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self._depth += tag == "table"
        if self._depth > 1:
            return
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            if not self.rows:
                self.rows.append([])
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._depth -= tag == "table"

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def _rows(html: str) -> str:
    parser = _Rows()
    parser.feed(_NO_TAG.sub("&lt;", html))
    parser.close()
    return "\n".join(
        " | ".join(" ".join(cell.split()).replace("|", "/") for cell in row)
        for row in parser.rows
        if any(cell.strip() for cell in row)
    )


def row_text(cells: Sequence[str]) -> str:
    """A row as a line of cells; trailing empty ones are left out."""
    return " | ".join(cells).rstrip(" |")


def sheet_cell(value: Any) -> str:
    """A cell of a sheet: text, number, or a list of parts such as links and mentions."""
    return _cell_line(_cell_text(value))


def base_cell(value: Any, field: BaseField, zone: tzinfo = UTC) -> str:
    """The value of a record's field, a number as the field shows it."""
    found = as_dict(value).get("value", value)  # of a formula
    number = found[0] if isinstance(found, list) and len(found) == 1 else found
    if isinstance(number, int | float) and not isinstance(number, bool):
        if field.kind in DATES:
            return _cell_date(number, zone)
        if field.number_format:
            sign = _CURRENCIES.get(field.currency, f"{field.currency} " if field.currency else "")
            return shown(number, f'"{sign}"{_excel_format(field.number_format)}')
    return _cell_line(_cell_text(value))


def _excel_format(number_format: str) -> str:
    """A format of a Base, where 1,000 stands for thousands and a sign alone for whole numbers."""
    with_digits = number_format.replace("1,000", "#,##0")
    if _DIGIT.search(with_digits):
        return with_digits
    return f"0{with_digits}" if "%" in with_digits else f"{with_digits}0"


def column_name(number: int) -> str:
    """The letters of a column, counted from 1: 27 is AA."""
    letters = ""
    while number > 0:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def _cell_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list):
        parts = [_cell_text(one) for one in value]
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
        return _cell_text(value["value"])
    return ""


def _cell_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "/")[:_LONGEST_CELL]


def _cell_date(ms: float, zone: tzinfo) -> str:
    """Such as 2026-03-03 09:30, without a time at midnight."""
    try:
        at = datetime.fromtimestamp(ms / 1000, zone)
    except (ValueError, OverflowError, OSError):
        return str(ms)
    return at.strftime("%Y-%m-%d" if (at.hour, at.minute) == (0, 0) else "%Y-%m-%d %H:%M")
