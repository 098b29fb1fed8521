"""Poolers: whether a connection is one session is asked, whatever the port."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
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


@contextmanager
def pooled(server: postgres.Server, database: str, mode: str) -> Iterator[str]:
    """The URL of the database through PgBouncer, which runs as the server does."""
    assert PGBOUNCER
    port = free_port()
    Path(server.socket_folder).parent.chmod(0o711)  # that account passes through it
    with tempfile.NamedTemporaryFile("w", suffix=".ini", encoding="utf-8") as config:
        config.write(
            f"[databases]\nmemo = host={server.socket_folder} dbname={database} user=postgres\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = any\n"
            f"unix_socket_dir =\npool_mode = {mode}\n"
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
@pytest.mark.parametrize(("mode", "sessions"), [("transaction", False), ("session", True)])
def test_a_pooler_is_told_by_what_it_does(
    postgres_server: postgres.Server, database_url: str, mode: str, sessions: bool
) -> None:
    database = postgres.database_name(database_url)
    with pooled(postgres_server, database, mode) as url:
        assert has_sessions(url) is sessions
        assert prepare_threshold(url) == (5 if sessions else None)
