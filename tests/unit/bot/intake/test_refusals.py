"""What the log says of requests that anybody can send."""

from __future__ import annotations

from typing import Any

import pytest

from bot.intake.framing import RefusalCounts


class Log:
    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []
        self.now = 1000.0
        self.refusals = RefusalCounts(clock=lambda: self.now, write=self._write)

    def _write(self, event: str, *, level: str, **fields: Any) -> None:
        assert level == "warning"
        self.lines.append((event, fields))

    def flood(self, seconds: int, per_second: int, reason: str = "not signed") -> None:
        for _ in range(seconds):
            for _ in range(per_second):
                self.refusals.count("webhook.refused", reason)
            self.now += 1


@pytest.fixture
def log() -> Log:
    return Log()


def test_the_first_request_of_a_reason_is_logged_at_once(log: Log) -> None:
    log.refusals.count("webhook.refused", "not JSON")
    assert log.lines == [("webhook.refused", {"reason": "not JSON", "requests": 1})]


def test_a_flood_makes_a_line_a_minute_that_says_how_many(log: Log) -> None:
    log.flood(600, 5)
    log.now += 60
    log.refusals.report()
    assert len(log.lines) == 11
    assert sum(fields["requests"] for _, fields in log.lines) == 600 * 5


def test_each_reason_has_a_line_of_its_own(log: Log) -> None:
    log.flood(30, 10)
    log.flood(30, 10, "not encrypted")
    assert [fields["reason"] for _, fields in log.lines] == ["not signed", "not encrypted"]


def test_what_came_after_the_last_line_is_logged_although_nothing_follows(log: Log) -> None:
    log.flood(1, 5)
    log.now += 60
    log.refusals.report()
    log.refusals.report()
    assert [fields["requests"] for _, fields in log.lines] == [1, 4]


def test_reasons_without_end_make_no_lines_without_end(log: Log) -> None:
    for number in range(500):
        log.refusals.count("web.refused", f"reason {number}")
    assert len(log.lines) <= 51
