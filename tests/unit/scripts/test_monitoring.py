"""The monitor's figures, from log lines alone."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memory.text import has_han
from scripts.operating.logs import (
    LoggedBacklog,
    LoggedLatency,
    MonitorLimits,
    Window,
    WindowReport,
    alarms,
    parse,
    percentile,
)
from tests.support.rows import every_row

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC).timestamp()


def _line(event: str, *, ago: float = 1.0, level: str = "info", **fields: Any) -> str:
    at = datetime.fromtimestamp(NOW - ago, UTC).isoformat().replace("+00:00", "Z")
    return json.dumps({"event": event, "level": level, "timestamp": at, **fields})


def _report(*lines: str, seconds: float = 900) -> WindowReport:
    window = Window(seconds)
    for line in lines:
        window.add(line)
    return window.report(NOW)


def test_deliveries_are_counted_by_outcome() -> None:
    report = _report(
        _line("webhook.accepted", duplicate=False),
        _line("webhook.accepted", duplicate=True),
        _line("webhook.refused", level="warning", reason="wrong signature"),
    )

    assert report.events == {"accepted": 1, "duplicate": 1, "refused": 1}
    assert report.warnings == {"webhook.refused wrong signature": 1}


def test_decisions_are_counted_by_reason() -> None:
    report = _report(
        _line("decision", message_id="om_1", respond=True, reason="explicit_trigger"),
        _line("decision", message_id="om_2", respond=False, reason="no_trigger"),
        _line("decision", message_id="om_3", respond=False, reason="no_trigger"),
    )

    assert report.decisions == {"answer: explicit_trigger": 1, "silent: no_trigger": 2}


def test_a_turn_is_in_flight_from_its_decision_to_its_end() -> None:
    lines = [
        _line("decision", message_id="om_1", respond=True, reason="p2p"),
        _line("decision", message_id="om_2", respond=True, reason="p2p"),
        _line("decision", message_id="om_3", respond=False, reason="no_trigger"),
        _line("turn", turn_id="om_1", outcome="answered", seconds=2),
    ]

    assert _report(*lines).in_flight == 1
    assert _report(*lines, _line("decision", message_id="om_2", respond=True)).in_flight == 1


def test_a_turn_that_never_ended_is_given_up_after_ten_minutes() -> None:
    lost = _line("decision", ago=700, message_id="om_1", respond=True, reason="p2p")

    assert _report(lost).in_flight == 0


def test_latencies_are_told_by_stage_and_only_answers_count_as_total() -> None:
    report = _report(
        _line("webhook.accepted", ack_ms=4),
        _line("turn", turn_id="1", outcome="answered", seconds=2.0, model_ms=1500, send_ms=200),
        _line(
            "turn", turn_id="2", outcome="answered", seconds=4.0, model_ms=3500, memory_load_ms=9
        ),
        _line("turn", turn_id="3", outcome="duplicate", seconds=400.0),
    )

    assert report.latency == {
        "ack": LoggedLatency(1, 0.004, 0.004),
        "total": LoggedLatency(2, 2.0, 4.0),
        "model": LoggedLatency(2, 1.5, 3.5),
        "send": LoggedLatency(1, 0.2, 0.2),
        "memory load": LoggedLatency(1, 0.009, 0.009),
    }
    assert report.turns == {"answered": 2, "duplicate": 1}


def test_tokens_retries_and_errors_are_summed() -> None:
    report = _report(
        _line("turn", turn_id="1", outcome="answered", attempt=1, tokens_in=100, tokens_out=20),
        _line("turn", turn_id="2", outcome="answered", attempt=3, tokens_in=50, tokens_out=5),
        _line("feishu.retry", level="warning", code=99991400),
        _line("job.failed", level="error", error="StoreUnavailable", code=""),
        _line("model.unavailable", level="error", reason="timeout"),
        _line("model.unavailable", level="error", reason="timeout"),
    )

    assert (report.tokens_in, report.tokens_out) == (150, 25)
    assert report.retries == 2
    assert report.errors == {"job.failed StoreUnavailable": 1, "model.unavailable timeout": 2}


def test_what_is_older_than_the_window_does_not_count() -> None:
    report = _report(
        _line("turn", ago=20, turn_id="1", outcome="answered"),
        _line("turn", ago=90, turn_id="2", outcome="answered"),
        _line("turn", ago=10, turn_id="3", outcome="answered"),
        seconds=60,
    )

    assert report.turns == {"answered": 2}


def test_lines_that_are_no_entries_are_skipped_and_counted() -> None:
    good = _line("turn", turn_id="1", outcome="answered")
    report = _report("Traceback (most recent call last):", good[:20], "", "[1]", "null", good)

    assert report.turns == {"answered": 1}
    assert report.skipped_lines == 4


@given(st.text() | st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.sampled_from(["event", "timestamp", "level", "respond", "seconds", "code", "x"]), inner
    ),
).map(json.dumps))  # fmt: skip
def test_no_line_can_stop_the_monitor(line: str) -> None:
    _report(line)


@given(
    st.dictionaries(
        st.sampled_from(
            ["level", "outcome", "seconds", "attempt", "tokens_in", "model_ms", "reason"]
        ),
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text()
        | st.lists(st.none())
        | st.just(10**400),
    ),
    st.sampled_from(["turn", "decision", "webhook.accepted", "feishu.retry", ""]),
)
def test_no_field_can_stop_the_monitor(fields: dict[str, Any], event: str) -> None:
    at = datetime.fromtimestamp(NOW, UTC).isoformat()

    report = _report(json.dumps({**fields, "event": event, "timestamp": at}))

    assert report.skipped_lines == 0


@given(st.lists(st.floats(0, 1e6), min_size=1), st.sampled_from([0.5, 0.95]))
def test_a_percentile_is_a_value_that_enough_do_not_exceed(
    values: list[float], share: float
) -> None:
    found = percentile(values, share)

    assert found in values
    assert sum(value <= found for value in values) >= share * len(values)
    assert sum(value < found for value in values) < share * len(values) + 1


def test_a_log_line_with_a_text_as_reason_does_not_name_it() -> None:
    report = _report(_line("odd", level="error", reason="x" * 100))

    assert report.errors == {"odd": 1}


@every_row(
    ("limits", "expected"),
    [
        (MonitorLimits(), []),
        (MonitorLimits(p95_s=5, errors=3, queue=10, pending_age_s=60), []),
        (MonitorLimits(p95_s=3.5), ["p95"]),
        (MonitorLimits(errors=2), ["errors"]),
        (MonitorLimits(queue=9), ["queue"]),
        (MonitorLimits(pending_age_s=59), ["pending age"]),
        (MonitorLimits(p95_s=1, errors=0, queue=0, pending_age_s=0),
         ["p95", "errors", "queue", "pending age"]),
    ],
)  # fmt: skip
def test_an_alarm_names_what_is_exceeded(limits: MonitorLimits, expected: list[str]) -> None:
    report = WindowReport(
        60, latency={"total": LoggedLatency(9, 1.0, 4.0)}, errors={"a": 2, "b": 1}
    )

    found = alarms(report, LoggedBacklog(10, 60.0), limits)

    assert [alarm.en.split(":")[0] for alarm in found] == expected
    assert all(" → scripts/" in text for alarm in found for text in (alarm.en, alarm.zh))
    assert all(has_han(alarm.zh) for alarm in found)


def test_the_memory_is_away_from_the_first_line_that_says_so_until_one_says_otherwise() -> None:
    away = _line("memory.away", ago=50, level="warning", error="ConnectError")
    still = _line("memory.still_away", ago=20, away_s=30, waiting=4)
    back = _line("memory.back", ago=5, away_s=45)

    assert _report(away).memory_away_s == 50
    assert _report(away, still, seconds=30).memory_away_s == 50
    assert _report(still).memory_away_s == 50, "the log was rotated"
    assert _report(away, still, back).memory_away_s is None
    assert _report(_line("memory.away", ago=95)).memory_away_s is None, "its worker was lost"


def test_answers_without_memory_are_counted() -> None:
    report = _report(
        _line("turn", turn_id="1", outcome="answered", degraded=True),
        _line("turn", turn_id="2", outcome="answered", degraded=False),
    )

    assert report.degraded == 1


@every_row(
    ("report", "backlog", "names"),
    [
        (WindowReport(60), None, []),
        (WindowReport(60, memory_away_s=31), None, ["away, or not written to, for 31 s"]),
        (
            WindowReport(60),
            LoggedBacklog(0, None, unstored_s=31.0),
            ["away, or not written to, for 31 s"],
        ),
        (WindowReport(60, memory_away_s=29), LoggedBacklog(0, None, 5.0), []),
    ],
)
def test_a_memory_that_is_away_for_too_long_is_an_alarm(
    report: WindowReport, backlog: LoggedBacklog | None, names: list[str]
) -> None:
    found = alarms(report, backlog, MonitorLimits(memory_away_s=30))

    assert [alarm.en.split(": ", 1)[1].split(",  ")[0].startswith(name)
            for alarm, name in zip(found, names, strict=True)] == [True] * len(names)  # fmt: skip
    assert alarms(report, backlog, MonitorLimits()) == []


def test_without_tables_nothing_is_said_about_the_queue() -> None:
    limits = MonitorLimits(queue=0, pending_age_s=0)

    assert limits.need_tables
    assert alarms(WindowReport(60), None, limits) == []


def test_an_entry_has_its_time_and_level() -> None:
    entry = parse(_line("turn", ago=0, level="warning"))

    assert entry is not None
    assert (entry.at, entry.event, entry.level) == (NOW, "turn", "warning")
