"""When a pool may try again, and what the log says of a database that is away."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
import pytest
from structlog.testing import capture_logs

from memory.backends.connections import NoConnection, ReconnectTimer, failure_kind, is_lost
from memory.deadlines import NoAnswer
from tests.support.rows import every_row


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def test_attempts_come_a_few_times_a_second_however_long_the_server_is_away() -> None:
    clock = Clock()
    reconnecting = ReconnectTimer(clock)
    assert reconnecting.wait_s == 0
    with capture_logs() as lines:
        for _ in range(2000):
            reconnecting.note_failure(psycopg.OperationalError("connection refused"))
            assert 0.1 <= reconnecting.wait_s <= 0.25
            clock.now += reconnecting.wait_s
        reconnecting.note_success()
        reconnecting.note_success()

    assert reconnecting.wait_s == 0
    assert [(line["event"], line.get("error")) for line in lines] == [
        ("database.away", "refused"),
        ("database.back", None),
    ]
    assert lines[1]["away_s"] == pytest.approx(2000 * 0.175, rel=0.1)


def test_a_refused_login_is_tried_seldom() -> None:
    reconnecting = ReconnectTimer(Clock())

    reconnecting.note_failure(
        psycopg.OperationalError('password authentication failed for user "bot"')
    )

    assert reconnecting.wait_s >= 3


def test_the_time_of_the_last_loss_is_kept() -> None:
    clock = Clock()
    reconnecting = ReconnectTimer(clock)
    assert reconnecting.lost_at < 0
    reconnecting.note_loss()
    clock.now += 5
    reconnecting.note_success()

    assert reconnecting.lost_at == 100


@every_row(
    ("said", "kind"),
    [
        ('connection to server on socket "/x" failed: No such file or directory', "refused"),
        ("FATAL:  the database system is starting up", "starting"),
        ("FATAL:  the database system is in recovery mode", "starting"),
        ("FATAL:  the database system is shutting down", "stopping"),
        ("FATAL:  sorry, too many clients already", "too_many_clients"),
        ("FATAL:  remaining connection slots are reserved", "too_many_clients"),
        ("server closed the connection unexpectedly", "refused"),
        ("connection timeout expired", "silent"),
        ("FATAL:  could not write init file: No space left on device", "disk_full"),
        ("something else", "OperationalError"),
    ],
)
def test_the_log_names_the_kind_and_quotes_nothing(said: str, kind: str) -> None:
    assert failure_kind(psycopg.OperationalError(said)) == kind


@every_row(
    ("failure", "lost"),
    [
        (psycopg.OperationalError("server closed the connection unexpectedly"), True),
        (psycopg.InterfaceError("the connection is closed"), True),
        (NoAnswer("no answer in time"), True),
        (NoConnection("none was free"), True),
        (psycopg.errors.AdminShutdown("terminating"), True),
        (psycopg.errors.CrashShutdown("terminating"), True),
        (psycopg.errors.CannotConnectNow("starting up"), True),
        (psycopg.errors.ConnectionFailure("gone"), True),
        (psycopg.errors.ReadOnlySqlTransaction("a standby"), True),
        (psycopg.errors.QueryCanceled("too slow"), False),
        (psycopg.errors.LockNotAvailable("busy"), False),
        (psycopg.errors.UniqueViolation("there"), False),
        (ValueError("gone"), False),
    ],
)
def test_a_lost_connection_is_told_from_a_failed_statement(failure: Exception, lost: bool) -> None:
    assert is_lost(failure) is lost
