"""Applies `sql/` to a database. Safe to run twice, and from several places at once.

An empty database gets `schema.sql`, which always describes the whole. A database that is there
already gets the numbered files that it lacks, in order. `functions/` and `access.sql` are applied
as a whole when they differ from what the ledger says the database has.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from memory.deadlines import DeadlineConnection

SCHEMA = "feishu_bot"
FOLDER = Path(__file__).parent.parent / "sql"
WHOLE_SCHEMA = "schema.sql"
TRIAL_MESSAGE = (
    "this database belongs to a trial from before the first release, which this version does not"
    " read: start afresh with an empty database (another DATA_DIR, or another database in"
    " DATABASE_URL), or keep the data with scripts/backup here and scripts/restore there"
)
_CONNECT_S = 5
_LOCK_KEY = 0x6665697368752D31  # "feishu-1": any constant that no other program uses
_LOCK = ("lock", f"select pg_advisory_lock({_LOCK_KEY})")
# While a statement waits for a lock on a table, everybody who comes later waits behind it.
_LOCK_TIMEOUT = "200ms"
_PATIENCE_S = 120.0
_QUIET_S = 2.0  # processes that start together wait for each other so long
_PAUSE_S = 0.5

_RECORD = sql.SQL("insert into {}.migrations (name) values (%s)").format(sql.Identifier(SCHEMA))
_RECORDED = sql.SQL("select name from {}.migrations").format(sql.Identifier(SCHEMA))
_FORGET_FUNCTIONS = sql.SQL("delete from {}.migrations where name like 'functions %%'").format(
    sql.Identifier(SCHEMA)
)
# The transaction that has held one of the tables for longest, of those named in the step.
_HOLDER = """
select format('%%s, held by process %%s (%%s) for %%s s', c.oid::regclass, a.pid,
              coalesce(nullif(a.application_name, ''), a.state),
              round(extract(epoch from now() - a.xact_start)))
from pg_locks l
join pg_class c on c.oid = l.relation and c.relkind in ('r', 'p')
join pg_stat_activity a on a.pid = l.pid
where l.granted and l.pid <> pg_backend_pid()
  and position(format('%%s.%%s', c.relnamespace::regnamespace, c.relname) in %s) > 0
order by a.xact_start limit 1
"""

Report = Callable[[str], None]
File = tuple[str, str]  # its name and its SQL, whose unqualified names mean `public`


@dataclass(frozen=True, slots=True)
class Step:
    """What is applied in one transaction, or not at all."""

    name: str
    files: tuple[File, ...]
    checked: tuple[File, ...] = ()  # applied last, with the bodies of functions checked
    covers: tuple[str, ...] = ()  # other names of the ledger that it stands for


class MigrationFailed(Exception):
    """The database refuses a step, or is busy; everything of the step was rolled back."""


class TrialDatabase(MigrationFailed):
    """The database was made before the first release."""

    def __init__(self) -> None:
        super().__init__(TRIAL_MESSAGE)


def apply_migrations(
    database_url: str, *, folder: Path = FOLDER, report: Report = lambda _: None
) -> list[str]:
    """Brings the database up to date and returns the names of the steps applied now."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        wait = partial(_with_lock_patience, report=report)
        connection.execute(f"set lock_timeout = '{_QUIET_S}s'".encode())
        wait("the migration", lambda: "another one", lambda: _execute(connection, *_LOCK))
        connection.execute(f"set lock_timeout = '{_LOCK_TIMEOUT}'".encode())
        steps = _missing(_recorded_names(connection), folder)
        for step in steps:
            report(f"applying {step.name}")
            wait(step.name, partial(_holder, connection, step), partial(_run, connection, step))
        _require_service_rights(connection)
        if reason := _enable_vectors(connection):
            report(f"recall goes by words alone: {reason}")
    return [step.name for step in steps]


def pending_steps(database_url: str, *, folder: Path = FOLDER) -> list[str]:
    """Names of the steps that this database lacks. Raises `TrialDatabase`."""
    return [step.name for step in _missing(_read_ledger(database_url), folder)]


def newer_steps(database_url: str) -> list[str]:
    """Names of the numbered files that a newer version has applied to this database."""
    known_steps = {step.name for step in read_numbered(FOLDER)}
    recorded_steps = _read_ledger(database_url)
    return sorted(
        name for name in recorded_steps if re.match(r"\d+_", name) and name not in known_steps
    )


def read_schema(folder: Path = FOLDER) -> Step:
    """`schema.sql` with all that it includes; it stands for the numbered files, too."""
    covered_steps = (read_functions(folder).name, *(step.name for step in read_numbered(folder)))
    return Step(WHOLE_SCHEMA, tuple(_expand(folder, WHOLE_SCHEMA)), covers=covered_steps)


def read_functions(folder: Path = FOLDER) -> Step:
    """All definitions. They call each other, so bodies can be checked only when all are there."""
    paths = [*sorted((folder / "functions").glob("*.sql")), *folder.glob("access.sql")]
    files = tuple((p.relative_to(folder).as_posix(), p.read_text(encoding="utf-8")) for p in paths)
    digest = hashlib.sha256("\0".join(part for file in files for part in file).encode())
    return Step(f"functions {digest.hexdigest()[:16]}", files, files)


def read_numbered(folder: Path = FOLDER) -> list[Step]:
    """The changes since the first release. Raises `ValueError` if two files share a number."""
    names = sorted(path.name for path in folder.glob("[0-9]*_*.sql"))
    if len({name.split("_")[0] for name in names}) != len(names):
        raise ValueError(f"two migrations share a number in {folder}: rename one of them")
    return [Step(name, tuple(_expand(folder, name))) for name in names]


def _expand(folder: Path, name: str) -> Iterator[File]:
    r"""The parts of a file, and in their places the files that it includes (`\ir`, as in psql)."""
    text = (folder / name).read_text(encoding="utf-8")
    for part in re.split(r"^(\\ir .+)$", text, flags=re.MULTILINE):
        if part.startswith("\\ir "):
            yield from _expand(folder, part.removeprefix("\\ir ").strip())
        elif part.strip():
            yield name, part


def _missing(recorded_steps: set[str], folder: Path) -> list[Step]:
    if not recorded_steps:
        return [read_schema(folder)]
    if WHOLE_SCHEMA not in recorded_steps:
        raise TrialDatabase
    steps = [*read_numbered(folder), read_functions(folder)]
    return [step for step in steps if step.name not in recorded_steps]


def _with_lock_patience(
    what: str, holder: Callable[[], str], attempt: Callable[[], object], *, report: Report
) -> None:
    """Tries again while somebody else holds a lock. Raises `MigrationFailed` after two minutes."""
    began, was_announced = time.monotonic(), False
    while True:
        try:
            attempt()
        except psycopg.errors.LockNotAvailable as exc:
            waited_s, waits = time.monotonic() - began, f"{what} waits for {holder()}"
            if waited_s > _PATIENCE_S:
                raise MigrationFailed(f"{waits}: end that, and run scripts/migrate again") from exc
        else:
            return
        if waited_s > _QUIET_S and not was_announced:
            report(waits)
            was_announced = True
        time.sleep(_PAUSE_S)


def _holder(connection: psycopg.Connection, step: Step) -> str:
    text = "\n".join(text for _, text in step.files)
    row = connection.execute(_HOLDER, [text]).fetchone()
    return str(row[0]) if row else "a lock"


def _run(connection: psycopg.Connection, step: Step) -> None:
    with connection.transaction():
        connection.execute("set local search_path = public")
        for check, files in (("off", step.files), ("on", step.checked)):
            connection.execute(f"set local check_function_bodies = {check}".encode())
            for name, text in files:
                _execute(connection, name, text)
        if step.checked:
            connection.execute(_FORGET_FUNCTIONS)
        for name in (step.name, *step.covers):
            connection.execute(_RECORD, [name])


def _execute(connection: psycopg.Connection, name: str, text: str) -> psycopg.Cursor[Any]:
    try:
        return connection.execute(text.encode())
    except psycopg.errors.LockNotAvailable:
        raise
    except psycopg.Error as exc:
        raise MigrationFailed(f"{name}: {exc}") from exc


def _enable_vectors(connection: psycopg.Connection) -> str:
    """Returns why there are no vectors, or ''. pgvector may have come since the last run."""
    row = _execute(connection, "vectors", "select public.enable_vectors()").fetchone()
    return str(row[0]) if row else ""


def _require_service_rights(connection: psycopg.Connection) -> None:
    """Raises `MigrationFailed` if policies apply to the service: it would silently find nothing."""
    query = "select rolsuper or rolbypassrls from pg_roles where rolname = 'service_role'"
    if connection.execute(query).fetchone() != (True,):
        raise MigrationFailed(
            "service_role may not step over row-level security, so the bot could not see what it "
            "has to tend: a superuser has to run once: alter role service_role bypassrls"
        )


def _read_ledger(database_url: str) -> set[str]:
    """The names in the ledger. A server that hangs raises `psycopg.OperationalError`."""
    with (
        DeadlineConnection.connect(
            database_url, autocommit=True, connect_timeout=_CONNECT_S
        ) as connection,
        connection.until_then(time.monotonic() + _CONNECT_S),
    ):
        return _recorded_names(connection)


def _recorded_names(connection: psycopg.Connection) -> set[str]:
    """The names in the ledger; none if the database is empty."""
    row = connection.execute("select to_regclass(%s)", [f"{SCHEMA}.migrations"]).fetchone()
    if not row or row[0] is None:
        return set()
    return {name for (name,) in connection.execute(_RECORDED)}
