"""Tries every verb on every table with every token, and says what came of it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
from psycopg import sql

from tests.support.access import Row
from tests.support.access_rules import (
    AT_THE_CONSOLE,
    AT_THE_CONSOLE_LOOKING,
    TABLES,
    VIEWS,
    Table,
)
from tests.support.actors import ACTORS, Actor, become

VERBS = ("select", "insert", "update", "delete", "truncate")
# As hosted Supabase does before anything of ours is there (supabase/postgres, init-scripts).
HOSTED_DEFAULTS = """
    alter default privileges in schema public
      grant all on tables to postgres, anon, authenticated, service_role;
    alter default privileges in schema public
      grant all on functions to postgres, anon, authenticated, service_role;
    alter default privileges in schema public
      grant all on sequences to postgres, anon, authenticated, service_role;
"""


def seed(connection: psycopg.Connection) -> None:
    """The rows of every table, without triggers."""
    connection.execute("set session_replication_role = replica")
    for name, table in TABLES.items():
        for row in table.rows:
            connection.execute(*_insert(name, table, row, row.name))
    connection.execute("reset session_replication_role")


def found(connection: psycopg.Connection, name: str, actor: Actor, verb: str) -> set[str]:
    """The rows, by name, on which `actor` can use `verb`; everything is rolled back.

    Triggers are off, so that nothing but privileges and policies decides. An update or a deletion
    names no column, so that no right to read them helps.
    """
    if name in VIEWS:
        return _rows_in_view(connection, name, actor, verb)
    table = TABLES[name]
    if verb == "insert":
        return {
            table.named(row) for row in table.rows if _inserts(connection, name, table, row, actor)
        }
    return _touched(connection, name, table, actor, verb)


def expected(name: str, actor: Actor, verb: str) -> set[str]:
    """What the rules say."""
    table = TABLES[VIEWS[name][0] if name in VIEWS else name]
    names = {table.named(row) for row in table.rows}
    if actor.role == "service_role":
        return names
    if actor.role == "bot_console":
        shown = AT_THE_CONSOLE | AT_THE_CONSOLE_LOOKING if actor.looks else AT_THE_CONSOLE
        return names if name in shown and verb == "select" else set()
    if actor.role == "anon" or verb == "truncate" or (name in VIEWS and verb != "select"):
        return set()
    rule = getattr(table.rules, verb)
    allowed = [row for row in table.rows if rule(actor, row)]
    if verb == "update" and not all(table.rules.kept(actor, row) for row in allowed):
        return set()
    return {table.named(row) for row in allowed}


def open_doors(connection: psycopg.Connection, name: str, verb: str) -> Iterator[str]:
    """Where what is found is not what is expected, in words."""
    for who, actor in ACTORS.items():
        if name in VIEWS and actor.role == "service_role":
            continue  # it may read them; nobody writes through them
        can, may = found(connection, name, actor, verb), expected(name, actor, verb)
        if can != may:
            yield f"{who}: {verb} {name}: can {sorted(can)}, may {sorted(may)}"


def _insert(name: str, table: Table, row: Row, key: str) -> tuple[sql.Composed, list[object]]:
    columns = table.make(row, key)
    statement = sql.SQL("insert into public.{} ({}) values ({})").format(
        sql.Identifier(name),
        sql.SQL(", ").join(map(sql.Identifier, columns)),
        sql.SQL(", ").join(sql.Placeholder() * len(columns)),
    )
    return statement, list(columns.values())


def _inserts(
    connection: psycopg.Connection, name: str, table: Table, row: Row, actor: Actor
) -> bool:
    with connection.transaction(force_rollback=True):
        connection.execute("set local session_replication_role = replica")
        become(connection, actor)
        try:
            connection.execute(*_insert(name, table, row, f"new {row.name}"))
        except psycopg.errors.InsufficientPrivilege:
            return False
        except psycopg.errors.UniqueViolation:
            return True  # it was let through; that row is there already
    return True


def _touched(
    connection: psycopg.Connection, name: str, table: Table, actor: Actor, verb: str
) -> set[str]:
    own = sql.Identifier(name)
    keys = sql.SQL("select {} from public.{}").format(sql.SQL(table.key), own)
    column = sql.Identifier(table.tried)
    with connection.transaction(force_rollback=True):
        connection.execute("set local session_replication_role = replica")
        become(connection, actor)
        try:
            if verb == "select":
                return {key for (key,) in connection.execute(keys)}
            if verb == "update":
                connection.execute(
                    sql.SQL("update public.{} set {} = %s").format(own, column), [table.changed]
                )
            elif verb == "delete":
                connection.execute(sql.SQL("delete from public.{}").format(own))
            else:
                connection.execute(sql.SQL("truncate public.{} cascade").format(own))
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UniqueViolation):
            return set()
        connection.execute("reset role")
        if verb == "update":
            keys += sql.SQL(" where {} = {}").format(column, sql.Literal(table.changed))
        left = {key for (key,) in connection.execute(keys)}
    return left if verb == "update" else set(map(table.named, table.rows)) - left


def _rows_in_view(connection: psycopg.Connection, name: str, actor: Actor, verb: str) -> set[str]:
    view, key = sql.Identifier(name), sql.Identifier(VIEWS[name][1])
    statements = {
        "select": sql.SQL("select {} from public.{}").format(key, view),
        "insert": sql.SQL("insert into public.{} default values").format(view),
        "update": sql.SQL("update public.{} set {} = 'x'").format(view, key),
        "delete": sql.SQL("delete from public.{}").format(view),
        "truncate": sql.SQL("truncate public.{}").format(view),
    }
    with connection.transaction(force_rollback=True):
        become(connection, actor)
        try:
            rows = connection.execute(statements[verb])
            return {key for (key,) in rows} if verb == "select" else {"?"}
        except (
            psycopg.errors.InsufficientPrivilege,
            psycopg.errors.ObjectNotInPrerequisiteState,
            psycopg.errors.WrongObjectType,
        ):
            return set()
