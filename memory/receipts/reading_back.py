"""Reads everything that is stored, as a role that can read it all and change nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from memory.receipts.keys import KEY_FILE
from memory.receipts.survivors import Search

ROLE = "bot_verifier"
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


@contextmanager
def as_verifier(connection: psycopg.Connection[Any]) -> Iterator[psycopg.Connection[Any]]:
    """A transaction of the role. It sees one moment of all tables and cannot write."""
    with connection.transaction():
        connection.execute("set transaction isolation level repeatable read, read only")
        connection.execute(f"set local role {ROLE}".encode())
        yield connection


def search_database(connection: psycopg.Connection[Any], search: Search) -> int:
    """Reads every column of every table that the role may read. Returns how many rows."""
    rows = 0
    tables = connection.execute(_COLUMNS).fetchall()
    for schema, table, columns in tables:
        for row in _rows(connection, schema, table, columns):
            search.read_row(f"{schema}.{table}", row)
            rows += 1
    known_places = {f"{schema}.{table}" for schema, table, _ in tables}
    for place, query in _ORPHANS:
        if place in known_places:
            for (key,) in connection.execute(query.encode()):
                search.note(place, f"of message row {key}, which is gone")
    return rows


def search_files(folder: Path, logs: Iterable[Path], search: Search) -> int:
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


def _rows(
    connection: psycopg.Connection[Any], schema: str, table: str, columns: list[str]
) -> Iterator[dict[str, Any]]:
    query = sql.SQL("select {} from {}").format(
        sql.SQL(", ").join(map(sql.Identifier, columns)), sql.Identifier(schema, table)
    )
    with connection.cursor("reading_back", row_factory=dict_row) as cursor:
        cursor.execute(query)
        yield from cursor
