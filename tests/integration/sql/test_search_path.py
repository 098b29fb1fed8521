"""A token's own types in `pg_temp` never stand in for those that functions of ours name."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from memory import migrations
from tests.support.actors import HERE, TENANT

# A domain is checked as whoever runs the statement that uses it. Sequences survive a rollback.
_TRAP = """
create sequence pg_temp.caught;
grant all on sequence pg_temp.caught to public;
create function pg_temp.trap() returns boolean language plpgsql as $$
begin
  if current_user <> 'authenticated' then perform nextval('pg_temp.caught'); end if;
  return true;
end $$;
create domain pg_temp.text as pg_catalog.text check (pg_temp.trap());
create domain pg_temp.jsonb as pg_catalog.jsonb check (pg_temp.trap());
create domain pg_temp.timestamptz as pg_catalog.timestamptz check (pg_temp.trap());
"""
_CALLABLE = """
select p.oid::regprocedure::pg_catalog.text, p.pronamespace::regnamespace::pg_catalog.text,
       p.proname::pg_catalog.text, array(
         select t::regtype::pg_catalog.text from unnest(p.proargtypes) with ordinality a (t, n)
         order by n) as types
from pg_proc p
where p.pronamespace in ('public'::regnamespace, 'bot_private'::regnamespace)
  and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
  and has_function_privilege('authenticated', p.oid, 'execute')
"""
_CLAIMS = (
    '{"role": "authenticated", "sub": "ou_a", "actor": "ou_a", "chat_type": "group",'
    f' "chat_id": "{HERE}", "tenant_key": "{TENANT}"}}'
)
_VALUES = {"text": "x", "jsonb": "{}", "boolean": "true", "text[]": "{x}", "uuid": None}


@pytest.fixture
def token(database: psycopg.Connection) -> Iterator[psycopg.Connection]:
    """A session as a token has it over a direct connection, with the trap laid."""
    with database.transaction(force_rollback=True):
        name = database.info.dbname
        grant = sql.SQL("grant temporary on database {} to authenticated")
        database.execute(grant.format(sql.Identifier(name)))
        database.execute("set local role authenticated")
        database.execute("select set_config('request.jwt.claims', %s, true)", [_CLAIMS])
        database.execute(_TRAP)
        yield database


def sprung(token: psycopg.Connection) -> list[str]:
    """The functions that evaluate the caller's types as somebody else."""
    return [
        name
        for name, schema, function, types in token.execute(_CALLABLE).fetchall()
        if _is_sprung(token, sql.Identifier(schema, function), types)
    ]


def _is_sprung(token: psycopg.Connection, function: sql.Identifier, types: list[str]) -> bool:
    before = _caught(token)
    for values in ([None] * len(types), [_VALUES.get(one, "1") for one in types]):
        given = sql.SQL(", ").join(
            sql.SQL("{}::pg_catalog.{}").format(value, sql.SQL(_in_catalogue(one)))
            for value, one in zip(values, types, strict=True)
        )
        try:
            with token.transaction():
                token.execute(sql.SQL("select {}({})").format(function, given))
        except psycopg.Error:
            continue
    return _caught(token) > before


def _in_catalogue(name: str) -> str:
    short = {"boolean": "bool", "integer": "int4", "bigint": "int8", "double precision": "float8"}
    return {**short, "timestamp with time zone": "timestamptz"}.get(name, name)


def _caught(token: psycopg.Connection) -> int:
    row = token.execute("select last_value, is_called from pg_temp.caught").fetchone()
    assert row
    return int(row[0]) if row[1] else 0


def test_a_type_of_the_caller_is_never_evaluated_as_somebody_else(
    token: psycopg.Connection,
) -> None:
    assert len(token.execute(_CALLABLE).fetchall()) > 150
    assert sprung(token) == []


def test_a_token_makes_no_temporary_objects(blank_database_url: str) -> None:
    migrations.apply_migrations(blank_database_url)

    with psycopg.connect(blank_database_url) as connection:
        connection.execute("create temporary table of_the_owner ()")
        for role in ("anon", "authenticated"):
            connection.execute(sql.SQL("set role {}").format(sql.Identifier(role)))
            with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
                connection.execute("create temporary table mine ()")
            connection.execute("reset role")
