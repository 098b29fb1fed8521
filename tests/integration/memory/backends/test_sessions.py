"""Poolers: whether a connection is one session is asked, whatever the port."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from lab.doubles.processes import eventually, free_port
from memory.backends.connections import has_sessions, prepare_threshold
from memory.backends.embedded_host import server_account
from tests.support import postgres

PGBOUNCER = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")


def test_a_database_that_is_reached_directly_has_sessions(database_url: str) -> None:
    assert has_sessions(database_url)
    assert prepare_threshold(database_url) == 5


def test_a_database_that_does_not_answer_is_asked_again() -> None:
    url = f"postgresql://nobody@127.0.0.1:{free_port()}/none"
    assert has_sessions(url)
    assert not has_sessions("postgresql://nobody@pooler.test:6543/none")
    assert has_sessions(f"postgresql://nobody:x:6543@127.0.0.1:{free_port()}/none")


@contextmanager
def pooled(server: postgres.Server, database: str, mode: str, size: int) -> Iterator[str]:
    """The URL of the database through PgBouncer, which runs as the server does."""
    assert PGBOUNCER
    port = free_port()
    Path(server.socket_folder).parent.chmod(0o711)  # that account passes through it
    with tempfile.NamedTemporaryFile("w", suffix=".ini", encoding="utf-8") as config:
        config.write(
            f"[databases]\nmemo = host={server.socket_folder} dbname={database} user=postgres\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = any\n"
            f"unix_socket_dir =\npool_mode = {mode}\ndefault_pool_size = {size}\n"
            "ignore_startup_parameters = extra_float_digits,options\n"
        )
        config.flush()
        Path(config.name).chmod(0o644)
        running = subprocess.Popen(
            [PGBOUNCER, config.name],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **server_account().options(),  # type: ignore[call-overload]
        )
        try:
            yield _answering(f"postgresql://anybody@127.0.0.1:{port}/memo")
        finally:
            running.terminate()
            running.wait()


def _answering(url: str) -> str:
    def answers() -> bool:
        try:
            psycopg.connect(url, autocommit=True).close()
        except psycopg.OperationalError:
            return False
        return True

    eventually(answers, within_s=20, what="PgBouncer answers")
    return url


@pytest.mark.skipif(PGBOUNCER is None, reason="PgBouncer is not installed")
@pytest.mark.parametrize("busy", [0, 6])
@pytest.mark.parametrize(
    ("mode", "size", "sessions"),
    [("transaction", 20, False), ("transaction", 1, False), ("statement", 20, False),
     ("session", 20, True), ("session", 1, True)],
)  # fmt: skip
def test_a_pooler_is_told_by_what_it_does(
    postgres_server: postgres.Server,
    database_url: str,
    mode: str,
    size: int,
    sessions: bool,
    busy: int,
) -> None:
    database = postgres.database_name(database_url)
    busy = min(busy, size - 1) if sessions else busy  # each of them has a session for good
    with pooled(postgres_server, database, mode, size) as url, asked_by_others(url, busy):
        assert has_sessions(url) is sessions
        assert prepare_threshold(url) == (5 if sessions else None)


@contextmanager
def asked_by_others(url: str, count: int) -> Iterator[None]:
    over = threading.Event()

    def ask() -> None:
        with psycopg.connect(url, autocommit=True, prepare_threshold=None) as connection:
            while not over.is_set():
                connection.execute("select pg_sleep(0.002)")

    others = [threading.Thread(target=ask) for _ in range(count)]
    for other in others:
        other.start()
    try:
        yield
    finally:
        over.set()
        for other in others:
            other.join()
