"""Searches everything that is stored for deleted words.

A row survived if it stands under the id of the deleted message, or if nobody's stored statement
explains its words. The database is read as a role that can read everything and change nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from memory.receipts import KEY_FILE

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
StoredRow = Mapping[str, Any]

VERIFIER_ROLE = "bot_verifier"

# Folders of the embedded server: deleted rows stay on its pages until vacuum.
_OF_THE_SERVER = frozenset({"postgres", "postgres.log", "run"})
_COLUMNS = """
select n.nspname, c.relname, array_agg(a.attname::text order by a.attnum)
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where n.nspname in ('public', 'bot_private', 'feishu_bot') and c.relkind in ('r', 'p')
  and c.relname <> 'agent_receipts' and has_column_privilege(c.oid, a.attnum, 'select')
  and a.atttypid = any (
    '{text,text[],varchar,json,json[],jsonb,jsonb[],bytea,bigint,integer}'::regtype[])
group by 1, 2 order by 1, 2
"""

# What is derived from messages that are not there any more.
_ORPHANS = (
    (
        "bot_private.turn_words",
        """
        select w.first_id from bot_private.turn_words w
        where not exists (select from public.agent_messages m where m.id = w.first_id)
          and not exists (select from public.imported_messages i where i.id = w.first_id)
        """,
    ),
    (
        "public.agent_embeddings",
        """
        select e.id from public.agent_embeddings e
        where not exists (select from public.agent_messages m where m.id = e.id)
        """,
    ),
)


@dataclass(frozen=True, slots=True)
class SurvivorTrace:
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
        patterns = tuple(_pattern(one) for one in map(comparable_text, self.texts) if one)
        object.__setattr__(self, "_patterns", patterns)

    def stands_in(self, text: str) -> bool:
        """Whether one of the texts stands in `text`, however it is spaced, wide or capitalised."""
        plain_text = comparable_text(text) if self._patterns else ""
        return any(pattern.search(plain_text) for pattern in self._patterns)


@dataclass(slots=True)
class SurvivorSearch:
    """Collects findings; `survivors` and `elsewhere` divide them when all places were read."""

    wanted: DeletedWords
    _certain: list[SurvivorTrace] = field(default_factory=list)
    _unexplained: list[SurvivorTrace] = field(default_factory=list)
    _statements: list[SurvivorTrace] = field(default_factory=list)

    @property
    def survivors(self) -> Sequence[SurvivorTrace]:
        return [*self._certain, *([] if self._statements else self._unexplained)]

    @property
    def elsewhere(self) -> Sequence[SurvivorTrace]:
        """The same words from another source."""
        return [*self._statements, *(self._unexplained if self._statements else [])]

    def read_row(self, table: str, row: StoredRow) -> None:
        """Looks at a row by its columns; `table` has its schema."""
        identities = set(_identities(row))
        hits = [column for column, value in row.items() if self._stand_in(value)]
        if identities & self.wanted.ids:
            if not hits and self.wanted.is_retraction and table in _OF_A_MESSAGE:
                hits = [""]
            self._certain += [SurvivorTrace(table, column, _row_label(row)) for column in hits]
            return
        for column in hits:
            is_statement = bool(identities) and _is_statement(table, row, column)
            place_counts = self._statements if is_statement else self._unexplained
            place_counts.append(SurvivorTrace(table, column, _row_label(row)))

    def read_text(self, place: str, text: str, row: str = "") -> None:
        """Looks at a text that belongs to nobody: of a file, of a log."""
        if self.wanted.stands_in(text):
            self._unexplained.append(SurvivorTrace(place, "", row))

    def note(self, place: str, row: str) -> None:
        """Notes a survivor that its place alone gives away."""
        self._certain.append(SurvivorTrace(place, "", row))

    def _stand_in(self, value: object) -> bool:
        return any(self.wanted.stands_in(text) for text in _texts(value))


def comparable_text(text: str) -> str:
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


def _is_statement(table: str, row: StoredRow, column: str) -> bool:
    by_a_person = row.get("role", "user") == "user" and not row.get("is_bot")
    return _STATEMENTS.get(table) == column and by_a_person


def _row_label(row: StoredRow) -> str:
    for column in ("id", "message_id", "turn_id", "source", "first_id"):
        if row.get(column) is not None:
            return f"{column} {row[column]}"
    return ""


@contextmanager
def as_verifier(connection: psycopg.Connection[Any]) -> Iterator[psycopg.Connection[Any]]:
    """A transaction of the role. It sees one moment of all tables and cannot write."""
    with connection.transaction():
        connection.execute("set transaction isolation level repeatable read, read only")
        connection.execute(f"set local role {VERIFIER_ROLE}".encode())
        yield connection


def search_database(connection: psycopg.Connection[Any], search: SurvivorSearch) -> int:
    """Reads every column of every table that the role may read. Returns how many rows."""
    rows = 0
    tables = connection.execute(_COLUMNS).fetchall()
    for schema, table, columns in tables:
        for row in _table_rows(connection, schema, table, columns):
            search.read_row(f"{schema}.{table}", row)
            rows += 1
    known_places = {f"{schema}.{table}" for schema, table, _ in tables}
    for place, query in _ORPHANS:
        if place in known_places:
            for (key,) in connection.execute(query.encode()):
                search.note(place, f"of message row {key}, which is gone")
    return rows


def search_files(folder: Path, logs: Iterable[Path], search: SurvivorSearch) -> int:
    """Reads the files below `folder`, except the database server's and the key, and `logs`."""
    files = [
        file
        for file in sorted(folder.rglob("*"))
        if file.relative_to(folder).parts[0] not in _OF_THE_SERVER
        and file.name != KEY_FILE
        and file.is_file()
    ]
    for file in (*files, *logs):
        for number, line in enumerate(file.read_bytes().split(b"\n"), start=1):
            search.read_text(str(file), line.decode(errors="ignore"), f"line {number}")
    return len(files)


def _table_rows(
    connection: psycopg.Connection[Any], schema: str, table: str, columns: list[str]
) -> Iterator[dict[str, Any]]:
    query = sql.SQL("select {} from {}").format(
        sql.SQL(", ").join(map(sql.Identifier, columns)), sql.Identifier(schema, table)
    )
    with connection.cursor("reading_back", row_factory=dict_row) as cursor:
        cursor.execute(query)
        yield from cursor
