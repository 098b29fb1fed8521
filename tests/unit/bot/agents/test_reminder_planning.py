"""What of a model's arguments can be kept as a reminder, and what is asked back."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from bot.agents.tool_types import ToolFailed
from bot.features.reminders.planning import addressees, content_of, due_moment, skipped_remark
from bot.mentions import Person, Roster
from tests.support.rows import every_row

NOW = datetime(2026, 11, 25, 10, 0, tzinfo=ZoneInfo("Asia/Shanghai"))
HERE = Roster(
    (
        Person("ou_a", "Alice"),
        Person("ou_b", "Bob"),
        Person("ou_c", "Lee"),
        Person("ou_d", "Lee"),
        Person("ou_bot", "Memo", is_bot=True),
    )
)


def utc(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%dT%H:%M}"


def test_a_local_time_is_the_zones_and_an_offset_is_heeded() -> None:
    assert utc(due_moment("2026-11-26T15:00", "once", NOW)[1]) == "2026-11-26T07:00"
    assert utc(due_moment("2026-11-26T15:00Z", "once", NOW)[1]) == "2026-11-26T15:00"
    assert due_moment("2026-11-26T15:00Z", "once", NOW)[0].hour == 23


@every_row(
    ("words", "due"),
    [
        ("tomorrow at 9:00", "2026-11-25T01:00"),
        ("明天上午9点", "2026-11-25T01:00"),
        ("in 14 hours", "2026-11-25T02:33"),
        ("2026-11-26T15:00", "2026-11-26T07:00"),
    ],
)
def test_words_count_from_when_they_were_asked(words: str, due: str) -> None:
    now = datetime(2026, 11, 25, 1, 33, tzinfo=ZoneInfo("Asia/Shanghai"))
    asked = datetime(2026, 11, 24, 20, 33, tzinfo=ZoneInfo("Asia/Shanghai"))
    assert utc(due_moment(words, "once", now, asked)[1]) == due


def test_a_time_that_has_passed_since_it_was_asked_is_in_the_past() -> None:
    asked = datetime(2026, 11, 25, 5, 0, tzinfo=ZoneInfo("Asia/Shanghai"))
    with pytest.raises(ToolFailed, match="now it is 2026-11-25 10:00"):
        due_moment("in 10 minutes", "once", NOW, asked)


def test_words_are_read_as_they_are_meant_and_may_say_how_often() -> None:
    assert utc(due_moment("tomorrow at 3pm", "once", NOW)[1]) == "2026-11-26T07:00"
    assert due_moment("每周五下午4点", "once", NOW)[2] == "weekly"
    assert due_moment("2026-11-26 3pm", "daily", NOW)[2] == "daily"


def test_at_night_the_small_hours_may_be_meant() -> None:
    night = NOW.replace(hour=1, minute=30)
    with pytest.raises(ToolFailed, match="morning or evening"):
        due_moment("at 3", "once", night)
    assert utc(due_moment("at 03:00", "once", night)[1]) == "2026-11-24T19:00"
    assert utc(due_moment("at 3", "once", NOW)[1]) == "2026-11-25T07:00"


def test_what_repeats_may_begin_in_the_past() -> None:
    assert utc(due_moment("2026-11-25T09:00", "daily", NOW)[1]) == "2026-11-26T01:00"


@every_row(
    ("at", "why"),
    [
        ("2026-02-30T09:00", "no date and time that exists"),
        ("2026-11-26T25:00", "no date and time that exists"),
        ("Thursday", "no date and time that exists"),
        ("at 8am and 8pm", "more than one time"),
        ("every other Friday at 3", "no repetition"),
        ("tomorrow at 6", "morning or evening"),
        ("", "no date and time that exists"),
        ("2026-11-26", "no time of day"),
        ("2026-11-25T09:59", "in the past"),
        ("2026-11-25T10:00", "in the past"),
        ("2099-01-01T09:00", "ten years"),
        ("9999-12-31T23:59", "ten years"),
    ],
)
def test_what_cannot_be_is_refused(at: str, why: str) -> None:
    with pytest.raises(ToolFailed, match=why):
        due_moment(at, "once", NOW)


def test_a_skipped_hour_is_said() -> None:
    berlin = datetime(2026, 3, 28, 10, 0, tzinfo=ZoneInfo("Europe/Berlin"))
    local, due, _ = due_moment("2026-03-29T02:30", "once", berlin)
    assert utc(due) == "2026-03-29T01:30"
    assert "02:30" in skipped_remark(local, berlin)


@every_row(
    ("wanted", "people", "for_all"),
    [
        (None, ("ou_a",), False),
        ([], ("ou_a",), False),
        (["me"], ("ou_a",), False),
        (["us"], (), True),
        (["大家"], (), True),
        (["@all"], (), True),
        (["@Bob", "me", "bob"], ("ou_b", "ou_a"), False),
    ],
)
def test_who_is_meant(wanted: list[str] | None, people: tuple[str, ...], for_all: bool) -> None:
    assert addressees(wanted, HERE, "ou_a", in_p2p=False) == (people, for_all)


@every_row(
    ("wanted", "in_p2p", "why"),
    [
        (["Carol"], False, "Nobody called 'Carol'"),
        (["Memo"], False, "Nobody called 'Memo'"),
        (["Lee"], False, "Several people"),
        (["Bob"], True, "private chat"),
        (["Carol"], True, "private chat"),
    ],
)
def test_who_cannot_be_told_is_asked_for(wanted: list[str], in_p2p: bool, why: str) -> None:
    with pytest.raises(ToolFailed, match=why):
        addressees(wanted, HERE, "ou_a", in_p2p=in_p2p)
    assert addressees(["us"], HERE, "ou_a", in_p2p=True) == (("ou_a",), False)


def test_a_text_is_needed_and_not_too_long() -> None:
    with pytest.raises(ToolFailed, match="what to remind of"):
        content_of(" \n ")
    with pytest.raises(ToolFailed, match="at most 1000"):
        content_of("x" * 1001)
    assert content_of(" a\n\x00b ") == "a b"


@every_row(
    ("words", "asked", "due"),
    [
        ("in 2 hours", "2027-03-28T00:30Z", "2027-03-28T02:30"),
        ("过两个小时", "2027-03-28T00:30Z", "2027-03-28T02:30"),
        ("in 26 hours", "2027-03-28T00:30Z", "2027-03-29T02:30"),
        ("in 90 minutes", "2027-10-30T23:30Z", "2027-10-31T01:00"),
        ("半小时后", "2027-10-31T00:40Z", "2027-10-31T01:10"),
        ("in half an hour", "2027-10-31T01:40Z", "2027-10-31T02:10"),
        ("in 1 day", "2027-03-27T12:00Z", "2027-03-28T11:00"),
        ("2027-10-31T02:10+01:00", "2027-10-31T00:40Z", "2027-10-31T01:10"),
    ],
)
def test_hours_are_hours_over_a_change_of_clocks(words: str, asked: str, due: str) -> None:
    now = datetime.fromisoformat(asked).astimezone(ZoneInfo("Europe/Berlin"))
    assert utc(due_moment(words, "once", now)[1]) == due


@every_row(
    ("at", "due"),
    [
        ("2026-11-31T18:00", "2026-11-30T10:00"),
        ("每月最后一天18:00", "2026-11-30T10:00"),
        ("on the 31st at 6 pm", "2026-11-30T10:00"),
        ("2026-02-30T18:00", "2026-11-30T10:00"),
    ],
)
def test_a_day_that_a_month_lacks_is_its_last_every_month(at: str, due: str) -> None:
    assert utc(due_moment(at, "monthly", NOW)[1]) == due


@every_row(
    ("at", "kind"),
    [("tomorrow at 3 pm London time", "time-zone"), ("农历八月十五上午9点", "time-lunar")],
)
def test_a_time_by_another_clock_or_calendar_is_asked_about(at: str, kind: str) -> None:
    with pytest.raises(ToolFailed) as refused:
        due_moment(at, "once", NOW)
    assert refused.value.kind == kind
