"""What keeps a worker from working is said once each time it changes."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
import pytest
import structlog

from bot.queue.connections import Interruptions
from memory.errors import NotMigrated


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def interruptions(clock: Clock) -> Interruptions:
    return Interruptions(clock=clock)


LACKING = NotMigrated("the database lacks schema.sql: run scripts/migrate")


def test_each_state_is_one_line_and_the_pauses_grow(interruptions: Interruptions) -> None:
    trouble = [LACKING] * 3 + [psycopg.errors.LockNotAvailable("busy")] * 3 + [LACKING]
    with structlog.testing.capture_logs() as lines:
        pauses = [interruptions.note_failure(exc) for exc in trouble]

    assert [line["event"] for line in lines] == [
        "database.not_migrated",
        "database.away",
        "database.not_migrated",
    ]
    assert pauses == [1, 2, 4, 8, 16, 30, 30]


def test_a_database_that_is_away_is_looked_for_all_the_time(interruptions: Interruptions) -> None:
    refused = RuntimeError("the queue failed")
    refused.__cause__ = psycopg.OperationalError("connection refused")
    wrong = psycopg.OperationalError("password authentication failed")
    with structlog.testing.capture_logs() as lines:
        pauses = [interruptions.note_failure(refused) for _ in range(20)]

        assert interruptions.note_failure(wrong) >= 1

    assert max(pauses) <= 0.25
    assert [(line["event"], line["error"]) for line in lines] == [("database.away", "refused")]


def test_after_some_work_it_is_said_again_and_after_a_long_one_the_pauses_are_short_again(
    interruptions: Interruptions, clock: Clock
) -> None:
    with structlog.testing.capture_logs() as lines:
        assert [interruptions.note_failure(LACKING) for _ in range(3)] == [1, 2, 4]
        interruptions.works()
        clock.now += 1
        assert interruptions.note_failure(LACKING) == 8
        interruptions.works()
        clock.now += 31
        assert interruptions.note_failure(LACKING) == 1

    assert len(lines) == 3


def test_what_is_hidden_in_a_group_or_a_cause_is_found(interruptions: Interruptions) -> None:
    outer = RuntimeError("the queue failed")
    outer.__cause__ = psycopg.errors.UndefinedFunction("no such function")
    with structlog.testing.capture_logs() as lines:
        interruptions.note_failure(ExceptionGroup("tasks", [ValueError("a"), outer]))

    assert lines[0]["event"] == "database.not_migrated"


def test_what_nobody_foresaw_is_told_by_its_frames_without_its_words(
    interruptions: Interruptions,
) -> None:
    with structlog.testing.capture_logs() as lines:
        try:
            int("what somebody said")
        except ValueError as exc:
            interruptions.note_failure(exc)

    (line,) = lines
    assert (line["event"], line["error"]) == ("worker.interrupted", "ValueError")
    assert "test_interruptions.py" in line["stack"]
    assert "invalid literal" not in line["stack"]
