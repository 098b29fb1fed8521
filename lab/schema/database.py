"""A whole database as SQL: schemas, types, the functions of policies, tables and views."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg

from lab.schema.expressions import filled
from lab.schema.sources import comments, functions
from lab.schema.tables import in_order, read, written
from memory import migrations

FILE = migrations.FOLDER / "schema.sql"
_HEAD = """\
-- Purpose: to be read. What a migrated database holds: tables with policies, grants and triggers.
-- The bodies of functions stand in functions/, who may call them in access.sql.
--
-- Made from the catalogue by .venv/bin/python -m lab.schema, and never applied."""
_SCHEMAS = """
select n.nspname, array(
  select format('grant usage on schema %I to %s;', n.nspname,
                string_agg(a.grantee::regrole::text, ', ' order by a.grantee::regrole::text))
  from aclexplode(n.nspacl) a where a.grantee <> n.nspowner and a.grantee <> 0
  having count(*) > 0)
from pg_namespace n where n.nspname in ('public', 'bot_private', 'feishu_bot', 'extensions')
order by n.nspname
"""
_EXTENSIONS = """
select format('create extension if not exists %I schema %s;', extname, extnamespace::regnamespace)
from pg_extension where extname <> 'plpgsql' order by extname
"""
_TYPES = """
select format('create type %s as enum (%s);', t.oid::regtype, string_agg(
    quote_literal(e.enumlabel), ', ' order by e.enumsortorder))
from pg_type t join pg_enum e on e.enumtypid = t.oid
where t.typnamespace::regnamespace::text in ('public', 'bot_private', 'feishu_bot')
group by t.oid order by t.oid::regtype::text
"""


def describe(connection: psycopg.Connection) -> str:
    """The text of the file."""
    with connection.transaction():
        connection.execute("set local search_path = ''")  # names come qualified
        return "\n\n".join([_HEAD, *_parts(connection, _numbered())]) + "\n"


def _numbered() -> str:
    steps = migrations.read_folder()
    return "\n".join(step.sql for step in steps if isinstance(step, migrations.Migration))


def _parts(connection: psycopg.Connection, files: str) -> Iterator[str]:
    yield "\n".join(_schemas(connection))
    for query in (_EXTENSIONS, _TYPES):
        if found := connection.execute(query.encode()).fetchall():
            yield "\n".join(filled(definition) for (definition,) in found)
    yield "-- The functions that policies depend on.\nset check_function_bodies = off;"
    yield from functions(files)
    tables = read(connection)
    about = comments(files)
    yield from (written(tables[name], about) for name in in_order(tables))


def _schemas(connection: psycopg.Connection) -> Iterator[str]:
    for name, granted in connection.execute(_SCHEMAS.encode()):
        if name != "public":
            yield f"create schema {name};"
        yield from granted
