"""Looks for a word in every row of every table, whatever its columns are."""

from __future__ import annotations

import psycopg
from psycopg import sql

_TABLES = """
    select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname in ('public', 'feishu_bot') and c.relkind in ('r', 'p', 'm')
"""


def tables_with(connection: psycopg.Connection, word: str) -> set[str]:
    """The tables, of the memory and the queue, that hold `word` anywhere."""
    found = set()
    for schema, table in connection.execute(_TABLES).fetchall():
        query = sql.SQL("select 1 from {} t where strpos(lower(to_jsonb(t)::text), %s) > 0 limit 1")
        if connection.execute(query.format(sql.Identifier(schema, table)), [word]).fetchone():
            found.add(table)
    return found
