"""Applies the numbered files of `sql/`, forward only, once, whoever runs it and how often.

The queue's tables are the library's own; they are created and upgraded from the files that ship
with it, under the same lock and in the same ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

SCHEMA = "feishu_bot"
_LOCK_KEY = 0x6665697368752D31  # "feishu-1": any constant that no other program uses

_LEDGER = f"""
create schema if not exists {SCHEMA};
create table if not exists {SCHEMA}.migrations (
  name text primary key,
  applied_at timestamptz not null default now()
);
alter table {SCHEMA}.migrations enable row level security;
"""
_RECORD = sql.SQL("insert into {}.migrations (name) values (%s)").format(sql.Identifier(SCHEMA))
_RECORDED = sql.SQL("select name from {}.migrations").format(sql.Identifier(SCHEMA))


@dataclass(frozen=True, slots=True)
class Migration:
    """A step: its name in the ledger, its SQL, and the schema its unqualified names mean."""

    name: str
    sql: str
    search_path: str = "public"


class MigrationFailed(Exception):
    """A file was refused by the database; everything of that file was rolled back."""


def apply(
    database_url: str,
    *,
    folder: Path | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> list[str]:
    """Brings the database up to date and returns the names of what was applied now."""
    steps = [*_queue_steps(), *read_folder(folder or Path(__file__).parent.parent / "sql")]
    applied: list[str] = []
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("select pg_advisory_lock(%s)", [_LOCK_KEY])
        connection.execute(_LEDGER)
        done = _applied(connection)
        for step in _pending(steps, done):
            if step.sql:
                report(f"applying {step.name}")
            _apply_step(connection, step)
            applied.append(step.name)
    return applied


def pending(database_url: str, *, folder: Path | None = None) -> list[str]:
    """Names of the files of `sql/` that this database does not have yet."""
    files = read_folder(folder or Path(__file__).parent.parent / "sql")
    with psycopg.connect(database_url, autocommit=True) as connection:
        row = connection.execute("select to_regclass(%s)", [f"{SCHEMA}.migrations"]).fetchone()
        done = _applied(connection) if row and row[0] else set()
    return [step.name for step in files if step.name not in done]


def read_folder(folder: Path) -> list[Migration]:
    """The numbered files in order. Raises `ValueError` when two files have one number."""
    files = sorted(folder.glob("[0-9]*.sql"))
    numbers = [file.name.split("_")[0] for file in files]
    if len(set(numbers)) != len(numbers):
        raise ValueError(f"two migrations share a number in {folder}: rename one of them")
    return [Migration(file.name, file.read_text(encoding="utf-8")) for file in files]


def _queue_steps() -> Iterator[Migration]:
    from procrastinate.schema import SchemaManager

    library = Path(SchemaManager.get_migrations_path())
    yield Migration("procrastinate", SchemaManager.get_schema(), SCHEMA)
    for file in sorted(library.glob("*.sql")):
        yield Migration(f"procrastinate/{file.name}", file.read_text(encoding="utf-8"), SCHEMA)


def _pending(steps: list[Migration], done: set[str]) -> Iterator[Migration]:
    # A fresh schema already contains every change the library shipped before it.
    fresh = "procrastinate" not in done
    for step in steps:
        if step.name in done:
            continue
        if fresh and step.name.startswith("procrastinate/"):
            yield Migration(step.name, "", SCHEMA)
        else:
            yield step


def _apply_step(connection: psycopg.Connection, step: Migration) -> None:
    try:
        with connection.transaction():
            connection.execute(f"set local search_path = {step.search_path}".encode())
            if step.sql:
                connection.execute(step.sql.encode())
            connection.execute(_RECORD, [step.name])
    except psycopg.Error as exc:
        raise MigrationFailed(f"{step.name}: {exc}") from exc


def _applied(connection: psycopg.Connection) -> set[str]:
    rows = connection.execute(_RECORDED).fetchall()
    return {row[0] for row in rows}
