"""Databases for tests: one embedded server per run, one database per test."""

from __future__ import annotations

import asyncio
import atexit
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psutil  # type: ignore[import-untyped]
import psycopg
from psycopg import sql

from lab.doubles.processes import eventually
from memory import migrations
from memory.backends import embedded

# A test database is thrown away, so nothing needs to survive a power cut.
_FAST = ("fsync = off", "full_page_writes = off", "synchronous_commit = off")


@dataclass(frozen=True, slots=True)
class Server:
    """A running Postgres; `url` is the superuser's, database `postgres`."""

    url: str

    @property
    def socket_folder(self) -> str:
        """Where the unix socket `.s.PGSQL.5432` lies."""
        return parse_qs(urlsplit(self.url).query)["host"][0]

    def database(self, name: str, *, user: str = "postgres") -> str:
        """The URL of another database of this server."""
        return f"postgresql://{user}@/{name}?host={self.socket_folder}"

    def execute(self, statement: sql.Composed | str) -> None:
        """Runs one statement as the superuser."""
        text = sql.SQL(statement) if isinstance(statement, str) else statement
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(text)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """The server is there and does nothing: connections open, and nobody answers."""
        first = int((Path(self.socket_folder) / "postmaster.pid").read_text().splitlines()[0])
        postmaster = psutil.Process(first)
        postmaster.suspend()  # it makes no more of them
        stopped = [postmaster, *postmaster.children(recursive=True)]
        for process in stopped[1:]:
            with suppress(psutil.NoSuchProcess):  # its session has ended
                process.suspend()
        try:
            yield
        finally:
            for process in reversed(stopped):
                with suppress(psutil.NoSuchProcess):
                    process.resume()

    @contextmanager
    def fresh_database(
        self, *, template: str = "template1", owner: str = "postgres"
    ) -> Iterator[str]:
        """A database of its own, dropped afterwards whoever is still connected. Yields its URL."""
        name = f"test_{uuid.uuid4().hex[:12]}"
        self.execute(
            sql.SQL("create database {} template {} owner {} strategy file_copy").format(
                *map(sql.Identifier, (name, template, owner))
            )
        )
        try:
            yield self.database(name, user=owner)
        finally:
            self.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@contextmanager
def standby(url: str) -> Iterator[None]:
    """The database takes no writes meanwhile; connections made meanwhile never take any, as those
    to a server that was the primary."""
    writes = "-c default_transaction_read_only=off"
    name = sql.Identifier(database_name(url))
    alter = sql.SQL("alter database {} set default_transaction_read_only = {}")
    others = "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = %s"
    with psycopg.connect(url, autocommit=True, options=writes) as connection:
        connection.execute(alter.format(name, sql.SQL("on")))
        connection.execute(f"{others} and pid <> pg_backend_pid()", [database_name(url)])
        try:
            yield
        finally:
            connection.execute(alter.format(name, sql.SQL("off")))


def start_server() -> Server:
    """Starts an embedded server in a folder of its own; it goes when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="bot-tests-"))
    # Handlers run last in, first out: the server stops before its folder goes.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    server = Server(embedded.start_embedded(folder))
    for setting in _FAST:
        server.execute(f"alter system set {setting}")
    server.execute("select pg_reload_conf()")
    return server


def statements_for_a_superuser(server: Server, url: str) -> list[str]:
    """What the migrations say that a superuser has to run; runs each, until they are through."""
    told: list[str] = []
    while True:
        try:
            migrations.apply_migrations(url)
        except migrations.MigrationFailed as exc:
            advice = str(exc).split("a superuser has to run once, leaving out what is there: ")[1]
            told.append(advice.split("CONTEXT")[0].strip())
            assert told.count(told[-1]) == 1, told[-1]
            server.execute(told[-1])
        else:
            return told


def database_name(url: str) -> str:
    """The database a URL names."""
    return urlsplit(url).path.removeprefix("/")


async def waits_for_a_lock(connection: psycopg.Connection) -> None:
    """Returns when some call waits for another's lock."""
    query = "select 1 from pg_stat_activity where wait_event_type = 'Lock'"
    await asyncio.to_thread(
        eventually, lambda: connection.execute(query).fetchone(), what="a call waits"
    )
