"""Applies `sql/`, forward only, whoever runs it and how often.

The numbered files make tables, indexes and policies, each once. `functions/` and `access.sql` are
applied as a whole whenever they differ from what the ledger says the database has. `backfills/`
run after them, each once: they may call functions, the numbered files may not. One whose name ends
with `.batches.sql` is one statement that commits as it goes, so that no turn waits for all of it;
where it was interrupted it starts again.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from memory import baseline
from memory.deadlines import DeadlineConnection

SCHEMA = "feishu_bot"
FOLDER = Path(__file__).parent.parent / "sql"
_CONNECT_S = 5
_BATCHES = ".batches.sql"
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
_FORGET_FUNCTIONS = sql.SQL("delete from {}.migrations where name like 'functions %%'").format(
    sql.Identifier(SCHEMA)
)


@dataclass(frozen=True, slots=True)
class Migration:
    """A step: its name in the ledger, and its SQL, whose unqualified names mean `public`."""

    name: str
    sql: str

    @property
    def warning(self) -> str:
        """What has to be done before it, on a database that is in use; "": nothing."""
        line = re.search(r"^-- Before this: (.+)", self.sql, re.MULTILINE)
        return line[1] if line else ""


@dataclass(frozen=True, slots=True)
class Functions:
    """`functions/` and `access.sql`: files (name, SQL) in order, applied together or not at all."""

    files: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """Its name in the ledger: `functions` and the digest of what the files say."""
        digest = hashlib.sha256("\0".join(part for file in self.files for part in file).encode())
        return f"functions {digest.hexdigest()[:16]}"


Step = Migration | Functions


class MigrationFailed(Exception):
    """A file was refused by the database; everything of its step was rolled back."""


def apply(
    database_url: str,
    *,
    folder: Path = FOLDER,
    report: Callable[[str], None] = lambda _: None,
) -> list[str]:
    """Brings the database up to date and returns the names of what was applied now."""
    applied: list[str] = []
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("select pg_advisory_lock(%s)", [_LOCK_KEY])
        connection.execute(_LEDGER)
        steps = read_folder(folder)
        done = _adopted(connection, {step.name for step in steps})
        for warning in _warnings(steps, done):
            report(warning)
        for step in steps:
            if step.name not in done:
                report(f"applying {step.name}")
                _apply_step(connection, step)
                applied.append(step.name)
        _require_service_rights(connection)
        if reason := _enable_vectors(connection):
            report(f"recall goes by words alone: {reason}")
    return applied


def pending(database_url: str, *, folder: Path = FOLDER) -> list[str]:
    """Names of the steps of `sql/` that this database does not have yet."""
    done = baseline.counted(_done(database_url))
    return [step.name for step in read_folder(folder) if step.name not in done]


def warnings(database_url: str, *, folder: Path = FOLDER) -> list[str]:
    """What has to be done before the steps that are missing."""
    return _warnings(read_folder(folder), _done(database_url))


def ahead(database_url: str, *, folder: Path = FOLDER) -> list[str]:
    """Names of the files that a newer version than `folder` has applied to this database: numbers
    only rise, so a lower one that is not there is an earlier version's."""
    last = max(step.name for step in _numbered(folder))
    return sorted(
        name
        for name in _done(database_url)
        if name.endswith(".sql") and "/" not in name and name > last
    )


def _done(database_url: str) -> set[str]:
    """The names in the ledger; from a server that hangs `psycopg.OperationalError`."""
    with (
        DeadlineConnection.connect(
            database_url, autocommit=True, connect_timeout=_CONNECT_S
        ) as connection,
        connection.until_then(time.monotonic() + _CONNECT_S),
    ):
        return _recorded(connection)


def read_folder(folder: Path = FOLDER) -> list[Step]:
    """What stands in `folder`, in the order in which it is applied. Raises `ValueError` when two
    files have one number."""
    functions = read_functions(folder)
    return [
        *_numbered(folder),
        *([functions] if functions.files else []),
        *_numbered(folder / "backfills", "backfills/"),
    ]


def read_functions(folder: Path = FOLDER) -> Functions:
    """The definitions in the order of their files' names, after them who may call what."""
    files = [*sorted((folder / "functions").glob("*.sql")), *folder.glob("access.sql")]
    named = (file.relative_to(folder).as_posix() for file in files)
    texts = (file.read_text(encoding="utf-8") for file in files)
    return Functions(tuple(zip(named, texts, strict=True)))


def _numbered(folder: Path, prefix: str = "") -> list[Migration]:
    files = sorted(folder.glob("[0-9]*.sql"))
    numbers = [file.name.split("_")[0] for file in files]
    if len(set(numbers)) != len(numbers):
        raise ValueError(f"two migrations share a number in {folder}: rename one of them")
    return [Migration(prefix + file.name, file.read_text(encoding="utf-8")) for file in files]


def _adopted(connection: psycopg.Connection, wanted: Set[str]) -> set[str]:
    """The names in the ledger, to which the baseline is added where the files are that it replaces.
    Raises `MigrationFailed` where only some of them are."""
    done = _applied(connection)
    if baseline.NAME not in wanted:
        return done
    if reason := baseline.unfinished(done):
        raise MigrationFailed(reason)
    if baseline.NAME in baseline.counted(done) - done:
        connection.execute(_RECORD, [baseline.NAME])
    return baseline.counted(done)


def _warnings(steps: list[Step], done: Set[str]) -> list[str]:
    """None for a blank database, which nobody uses yet."""
    if not done:
        return []
    missing = (one for one in steps if one.name not in done and isinstance(one, Migration))
    return [step.warning for step in missing if step.warning]


def _apply_step(connection: psycopg.Connection, step: Step) -> None:
    if isinstance(step, Migration) and step.name.endswith(_BATCHES):
        with _named(step.name):
            connection.execute(step.sql.encode())
        connection.execute(_RECORD, [step.name])
        return
    with _named(step.name), connection.transaction():
        if isinstance(step, Functions):
            _define(connection, step)
            connection.execute(_FORGET_FUNCTIONS)
        else:
            _execute(connection, step.name, step.sql)
        connection.execute(_RECORD, [step.name])


def _define(connection: psycopg.Connection, functions: Functions) -> None:
    """Twice: they call each other, so their bodies can be checked only when all are there."""
    for check in ("off", "on"):
        connection.execute(f"set local check_function_bodies = {check}".encode())
        for name, text in functions.files:
            _execute(connection, name, text)


def _execute(connection: psycopg.Connection, name: str, text: str) -> None:
    with _named(name):
        connection.execute("set local search_path = public")
        connection.execute(text.encode())


@contextmanager
def _named(name: str) -> Iterator[None]:
    try:
        yield
    except psycopg.Error as exc:
        raise MigrationFailed(f"{name}: {exc}") from exc


def _enable_vectors(connection: psycopg.Connection) -> str:
    """Why there are no vectors, '' when there are. pgvector may have come since the last run."""
    if connection.execute("select to_regproc('public.enable_vectors')").fetchone() == (None,):
        return ""
    with _named("enable_vectors"):
        row = connection.execute("select public.enable_vectors()").fetchone()
    return str(row[0]) if row else ""


def _require_service_rights(connection: psycopg.Connection) -> None:
    """A service that policies hold for finds nothing, and nobody is told. Raises
    `MigrationFailed`."""
    asked = "select rolsuper or rolbypassrls from pg_roles where rolname = 'service_role'"
    if connection.execute(asked).fetchone() != (True,):
        raise MigrationFailed(
            "service_role may not step over row-level security, so the bot could not see what it "
            "has to tend: a superuser has to run once: alter role service_role bypassrls"
        )


def _recorded(connection: psycopg.Connection) -> set[str]:
    """What the ledger says, nothing when there is none yet."""
    row = connection.execute("select to_regclass(%s)", [f"{SCHEMA}.migrations"]).fetchone()
    return _applied(connection) if row and row[0] else set()


def _applied(connection: psycopg.Connection) -> set[str]:
    rows = connection.execute(_RECORDED).fetchall()
    return {row[0] for row in rows}
