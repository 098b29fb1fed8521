"""How the operators' scripts speak: tables on a terminal, plain columns elsewhere, or JSON."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from datetime import UTC
from typing import Any, TypeVar

import psycopg
import structlog
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress, TaskID
from rich.table import Table
from rich.text import Text

from bot.operations.startup_checks import log_remarks, look_at_names
from bot.queue.looking import DatabaseTrouble, known_meaning, meaning
from bot.settings import EXIT_STATUS, SettingsError
from bot.text.languages import Language, Sentence
from memory.errors import StoreError, StoreUnavailable
from scripts.operating.arguments import FINDINGS as FINDINGS
from scripts.operating.arguments import in_language, language
from scripts.operating.arguments import parser as parser
from scripts.operating.desk import since
from scripts.operating.names import NamedIds, NamesOf, NotKnown
from scripts.operating.words import said_in

T = TypeVar("T")
_ID = re.compile(r"\b(o[cumn]_|omt_|cli_|note_)([0-9A-Za-z]{6})[0-9A-Za-z_-]{4,}")


def moment(text: str) -> str:
    """An argument such as 2h, 7d or 2026-01-31, for `Desk.since`."""
    try:
        since(text, UTC)
    except (ValueError, OverflowError) as exc:
        sentence = in_language(
            f"{text!r} is no time: give 30m, 2h, 7d, or a date such as 2026-01-31",
            f"{text!r} 不是时间：请给出 30m、2h、7d，或日期，如 2026-01-31",
        )
        raise argparse.ArgumentTypeError(sentence) from exc
    return text


def run(work: Callable[[argparse.Namespace], Awaitable[int]], given: argparse.Namespace) -> int:
    """The exit status: of `work`, or 2 with one sentence when it cannot be done as configured."""
    os.umask(0o077)
    quiet()
    log_remarks(look_at_names())
    try:
        return asyncio.run(work(given))  # type: ignore[arg-type]
    except NotKnown as exc:
        print(exc.sentence.said(language(getattr(given, "lang", None))), file=sys.stderr)
        return FINDINGS
    except SettingsError as exc:
        chinese = language(getattr(given, "lang", None)) == "zh"
        print(exc.zh if chinese else exc, file=sys.stderr)
        return EXIT_STATUS
    except DatabaseTrouble as exc:
        print(exc.said(language(getattr(given, "lang", None))), file=sys.stderr)
        return EXIT_STATUS
    except psycopg.Error as exc:
        print(meaning(exc).said(language(getattr(given, "lang", None))), file=sys.stderr)
        return EXIT_STATUS
    except StoreError as exc:
        sentence = known_meaning(str(exc)) if isinstance(exc, StoreUnavailable) else None
        tongue = language(getattr(given, "lang", None))
        print(sentence.said(tongue) if sentence else exc, file=sys.stderr)
        return EXIT_STATUS


def quiet() -> None:
    """What the code below logs goes to standard error, from warnings on."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


class Screen:
    """Standard output. On a terminal Rich draws, with ids cut short so that a line fits; elsewhere
    columns are separated by tabs and ids are whole. `language` is that of titles and columns;
    `names_of` gives the names that stand before ids."""

    def __init__(self, language: Language = "en", names_of: NamesOf = lambda ids: {}) -> None:
        self._console = Console()
        self._language = language
        self._ids = NamedIds(language, names_of)

    @property
    def language(self) -> Language:
        return self._language

    @property
    def is_terminal(self) -> bool:
        return self._console.is_terminal

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Nothing is printed for a table without rows but its title."""
        cells = self._named([[_plain(cell) for cell in row] for row in rows])
        title, columns = self._ids.put(self.said(title)), [self.said(column) for column in columns]
        if self.is_terminal:
            short = [[short_ids(cell) for cell in row] for row in cells]
            self._console.print(rich_table(short_ids(title), columns, short))
            return
        print(f"{title} ({len(cells)})")
        for row in [list(columns), *cells] if cells else []:
            print("\t".join(row))
        print()

    def named(self, text: str) -> str:
        """The text with names before its ids."""
        named = _plain(self._ids.put(text))
        return short_ids(named) if self.is_terminal else named

    def _named(self, rows: Sequence[Sequence[str]]) -> list[list[str]]:
        self._ids.learn(cell for row in rows for cell in row)
        return [[_plain(self._ids.put_into_cell(cell)) for cell in row] for row in rows]

    def said(self, words: str) -> str:
        """A title or the name of a column in the language of this screen."""
        return said_in(self._language, words)

    def verdict(self, name: str, words: Sentence, *, good: bool) -> None:
        """A line that is read first: what was looked at, and how it is."""
        colon = "：" if self._language == "zh" else ": "
        label = f"{self.said(name)}{colon}{words.said(self._language)}"
        self.say(label, style="bold green" if good else "bold red")

    def say(self, text: str, *, style: str = "") -> None:
        if self.is_terminal:
            self._console.print(Text(text, style=style))
        else:
            print(text)


def short_ids(text: str) -> str:
    """`ou_4f2a9c…` for an id of Feishu's, and a conversation without its first word."""
    return _ID.sub(lambda found: f"{found[1]}{found[2]}…", text.replace("feishu:oc_", "oc_"))


def rich_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table for a terminal; nothing in it is read as markup."""
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def print_json(value: object) -> None:
    """One JSON document on one line; dataclasses become objects."""
    print(json.dumps(value, ensure_ascii=False, default=_as_json))


@contextmanager
def progress(title: str, total: int | None = None) -> Iterator[Callable[[], None]]:
    """A bar on standard error when that is a terminal. Yields what counts one step."""
    bar = Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())
    with bar:
        task: TaskID = bar.add_task(title, total=total)
        yield lambda: bar.advance(task)


def _plain(cell: object) -> str:
    """One line of text without control characters: what people wrote must not steer a terminal."""
    if cell is None:
        return "-"
    text = f"{cell:g}" if isinstance(cell, float) else str(cell)
    return "".join(c if c.isprintable() else " " for c in text)


def _as_json(value: object) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
