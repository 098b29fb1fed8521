"""Whoever looks while the database stands is told within seconds what holds it up."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from bot.operations.doctor import health
from bot.operations.doctor.result import Check
from bot.queue.looking import DatabaseTrouble, looking, meaning
from bot.queue.operator_actions import QueueOperations
from tests.support.forking import run_script
from tests.support.rows import every_row

SOON_S = 12.0  # for a process that starts and looks once on a busy machine


@contextmanager
def locked(url: str, table: str) -> Iterator[int]:
    """Somebody holds the table; yields the process of the database that does."""
    with psycopg.connect(url, application_name="nightly report") as connection:
        connection.execute(f"lock table {table} in access exclusive mode".encode())
        yield connection.info.backend_pid
        connection.rollback()


def trouble(url: str) -> Check | None:
    checks = health.health_checks(url)
    return next((one for one in checks if one.name == health.DATABASE_CHECK), None)


def test_a_locked_table_is_named_with_its_process_and_how_to_end_it(database_url: str) -> None:
    assert trouble(database_url) is None
    with locked(database_url, "public.agent_turns") as pid:
        time.sleep(2.1)  # what is held for less is nobody's trouble
        began = time.monotonic()
        found = trouble(database_url)
        took_s = time.monotonic() - began

    assert found
    assert found.state == "fail"
    assert took_s < SOON_S
    for said in (found.sentence.en, found.sentence.zh):
        assert f"{pid}" in said
        assert "nightly report" in said
        assert "agent_turns" in said
    assert f"{pid}" in found.command
    assert trouble(database_url) is None


def test_a_look_leaves_nothing_waiting_at_the_server(database_url: str) -> None:
    with locked(database_url, "public.agent_turns"):
        for _ in range(2):
            with pytest.raises(DatabaseTrouble), looking(database_url, 0.2) as connection:
                connection.execute("select count(*) from public.agent_turns")
        with psycopg.connect(database_url) as connection:
            (waiting,) = connection.execute(
                "select count(*) from pg_stat_activity"
                " where wait_event_type = 'Lock' and datname = current_database()"
            ).fetchone() or (None,)

    assert waiting == 0


def test_who_keeps_others_waiting_over_rows_is_found_though_the_look_waits_for_nothing(
    database_url: str,
) -> None:
    lock = "insert into feishu_bot.leases values ('x', 'y', now())"
    with (
        psycopg.connect(database_url, application_name="an open psql") as holder,
        psycopg.connect(database_url, autocommit=True) as other,
    ):
        holder.execute(lock)
        other.execute("set statement_timeout = '20s'")
        waiting = other.pgconn
        waiting.send_query(lock.encode())
        deadline = time.monotonic() + 20
        while (found := trouble(database_url)) is None and time.monotonic() < deadline:
            time.sleep(0.2)
        holder.rollback()
        while waiting.get_result():
            pass

    assert found
    assert "an open psql" in found.sentence.en
    assert "1 wait" in found.sentence.en


@pytest.fixture
def silent_server() -> Iterator[str]:
    """Accepts connections and says nothing, as a server that was stopped does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"postgresql://bot:secret@127.0.0.1:{server.getsockname()[1]}/postgres"


def test_a_server_that_says_nothing_is_given_up_within_seconds(silent_server: str) -> None:
    began = time.monotonic()
    with pytest.raises(DatabaseTrouble) as failure:
        QueueOperations(silent_server).depth()

    assert time.monotonic() - began < SOON_S
    assert "does not answer in time" in failure.value.sentence.en
    assert "secret" not in str(failure.value)


SCRIPTS = [
    ("en_GB.UTF-8", ("queue", "list")),
    ("en_GB.UTF-8", ("monitor", "--db", "--once")),
    ("zh_CN.UTF-8", ("check_memory",)),
]


@pytest.mark.parametrize(("lang", "script"), SCRIPTS)
def test_a_script_ends_with_the_cause_in_the_language_of_the_terminal(
    database_url: str, tmp_path: Path, lang: str, script: tuple[str, ...]
) -> None:
    environment = {"DATABASE_URL": database_url, "DATA_DIR": str(tmp_path), "LANG": lang}
    with locked(database_url, "public.agent_turns") as pid:
        time.sleep(2.1)
        began = time.monotonic()
        done = _run(environment, *script)
        took_s = time.monotonic() - began

    assert took_s < SOON_S
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    assert f"{pid}" in done.stderr
    assert ("数据库进程" if lang.startswith("zh") else "process") in done.stderr


def _run(environment: dict[str, str], *script: str) -> subprocess.CompletedProcess[str]:
    name, *arguments = script
    return run_script(name, *arguments, env=environment | {"LC_ALL": ""})


@every_row(
    "words, says",
    {
        "FATAL:  could not write init file: No space left on device": "disk of the database",
        "FATAL:  the database system is starting up": "is starting",
        "FATAL:  sorry, too many clients already": "no free connections",
    }.items(),
)
def test_what_libpq_says_is_translated(words: str, says: str) -> None:
    assert says in meaning(psycopg.OperationalError(words)).en
