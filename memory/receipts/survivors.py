"""Looks for deleted words in stored values, and tells a survivor from a colleague's own statement.

A row survived if it stands under the id of the deleted message, or if nobody's stored statement
explains its words. What another message says, and what may come from that, is no survivor.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# Under these names a row or a JSON object says which message it is or comes from.
_IDENTITY = frozenset({"message_id", "turn_id", "turn", "source"})
# Where people's own statements stand, and in which column.
_STATEMENTS = {
    "public.agent_messages": "content",
    "public.chat_transcript": "content",
    "public.imported_messages": "content",
    "feishu_bot.jobs": "args",
}
# What stands here under the id of a retracted message is words of it, whatever they are.
_OF_A_MESSAGE = frozenset(_STATEMENTS) - {"feishu_bot.jobs"} | {
    "bot_private.source_terms",
    "bot_private.talk_terms",
}

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Trace:
    """Where something was found; `column` is "" if the row's id gives it away."""

    place: str
    column: str
    row: str

    def __str__(self) -> str:
        column = f".{self.column}" if self.column else ""
        return f"{self.place}{column} ({self.row})" if self.row else f"{self.place}{column}"


@dataclass(frozen=True, slots=True)
class DeletedWords:
    """What a deletion removed: the words as far as they are given, and the ids it was about."""

    texts: tuple[str, ...]
    ids: frozenset[str] = frozenset()
    is_retraction: bool = False
    _patterns: tuple[re.Pattern[str], ...] = field(init=False)

    def __post_init__(self) -> None:
        patterns = tuple(_pattern(one) for one in map(plain, self.texts) if one)
        object.__setattr__(self, "_patterns", patterns)

    def stands_in(self, text: str) -> bool:
        """Whether one of the texts stands in `text`, however it is spaced, wide or capitalised."""
        plain_text = plain(text) if self._patterns else ""
        return any(pattern.search(plain_text) for pattern in self._patterns)


@dataclass(slots=True)
class Search:
    """Collects findings; `survivors` and `elsewhere` divide them when all places were read."""

    wanted: DeletedWords
    _certain: list[Trace] = field(default_factory=list)
    _unexplained: list[Trace] = field(default_factory=list)
    _statements: list[Trace] = field(default_factory=list)

    @property
    def survivors(self) -> Sequence[Trace]:
        return [*self._certain, *([] if self._statements else self._unexplained)]

    @property
    def elsewhere(self) -> Sequence[Trace]:
        """The same words from another source."""
        return [*self._statements, *(self._unexplained if self._statements else [])]

    def read_row(self, table: str, row: Row) -> None:
        """Looks at a row by its columns; `table` has its schema."""
        identities = set(_identities(row))
        hits = [column for column, value in row.items() if self._stand_in(value)]
        if identities & self.wanted.ids:
            if not hits and self.wanted.is_retraction and table in _OF_A_MESSAGE:
                hits = [""]
            self._certain += [Trace(table, column, _name(row)) for column in hits]
            return
        for column in hits:
            is_statement = bool(identities) and _is_statement(table, row, column)
            place_counts = self._statements if is_statement else self._unexplained
            place_counts.append(Trace(table, column, _name(row)))

    def read_text(self, place: str, text: str, row: str = "") -> None:
        """Looks at a text that belongs to nobody: of a file, of a log."""
        if self.wanted.stands_in(text):
            self._unexplained.append(Trace(place, "", row))

    def note(self, place: str, row: str) -> None:
        """Notes a survivor that its place alone gives away."""
        self._certain.append(Trace(place, "", row))

    def _stand_in(self, value: object) -> bool:
        return any(self.wanted.stands_in(text) for text in _texts(value))


def plain(text: str) -> str:
    """As words are compared: one width, one case, single spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _pattern(text: str) -> re.Pattern[str]:
    """Whole tokens only where the text begins or ends with a letter or digit of ASCII."""
    before = r"(?<![a-z0-9])" if text[0].isascii() and text[0].isalnum() else ""
    after = r"(?![a-z0-9])" if text[-1].isascii() and text[-1].isalnum() else ""
    return re.compile(f"{before}{re.escape(text)}{after}")


def _texts(value: object) -> Iterator[str]:
    """The texts in a value of a column, with the keys of its objects."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode(errors="ignore")
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from (str(key), *_texts(one))
            if isinstance(one, str | int | float):
                yield f"{key} {one}"
    elif isinstance(value, Iterable):
        for one in value:
            yield from _texts(one)


def _identities(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, one in value.items():
            if key in _IDENTITY and isinstance(one, str):
                yield one
            else:
                yield from _identities(one)
    elif isinstance(value, list):
        for one in value:
            yield from _identities(one)


def _is_statement(table: str, row: Row, column: str) -> bool:
    by_a_person = row.get("role", "user") == "user" and not row.get("is_bot")
    return _STATEMENTS.get(table) == column and by_a_person


def _name(row: Row) -> str:
    for column in ("id", "message_id", "turn_id", "source", "first_id"):
        if row.get(column) is not None:
            return f"{column} {row[column]}"
    return ""
