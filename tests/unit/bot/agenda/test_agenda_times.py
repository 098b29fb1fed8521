"""Working hours, free times and zones, also when the clock changes; and what people call them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.agenda.plans import Attendee, MeetingPlan, TaskPlan
from bot.agenda.times import (
    STEP_S,
    AgendaRefused,
    event_span,
    first_free,
    free_within,
    merged_spans,
    moment_s,
    overlaps,
    parse_days,
    parse_end,
    parse_time,
    whole_days,
    working_hours,
    zone_of,
)
from bot.features.calendar.wording import PersonAgenda, agenda_outcome, times_of_events
from bot.feishu.calendars import BusySpan, CalendarEvent
from tests.support.rows import every_row

SHANGHAI, BERLIN = ZoneInfo("Asia/Shanghai"), ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 25, 10, 0, tzinfo=SHANGHAI)  # a Wednesday
spans = st.lists(
    st.tuples(st.integers(0, 40_000), st.integers(0, 9_000)).map(
        lambda one: BusySpan(one[0], one[0] + one[1])
    ),
    max_size=8,
)


@given(spans)
def test_free_and_busy_make_up_the_window_and_never_meet(busy: list[BusySpan]) -> None:
    window = BusySpan(5_000, 30_000)
    free = free_within(window, busy)
    taken = sum(
        max(0, min(one.end_s, window.end_s) - max(one.start_s, window.start_s))
        for one in merged_spans(busy)
    )
    assert sum(one.end_s - one.start_s for one in free) + taken == window.end_s - window.start_s
    assert not any(overlaps(one, busy) for one in free)


@given(spans, st.integers(300, 7_200), st.integers(0, 35_000))
def test_the_first_free_time_is_free_on_the_grid_and_not_over(
    busy: list[BusySpan], length_s: int, now_s: int
) -> None:
    window = BusySpan(5_400, 32_400)
    found = first_free(window, busy, length_s, now_s)
    fitting = [
        start
        for start in range(window.start_s, window.end_s - length_s + 1, STEP_S)
        if start >= now_s and not overlaps(BusySpan(start, start + length_s), merged_spans(busy))
    ]
    assert (found.start_s if found else None) == (fitting[0] if fitting else None)


def test_days_on_which_the_clock_changes_are_as_long_as_they_are() -> None:
    spring, autumn = date(2026, 3, 29), date(2026, 10, 25)
    assert [one.end_s - one.start_s for one in (
        whole_days(spring, spring, BERLIN), whole_days(autumn, autumn, BERLIN),
    )] == [23 * 3600, 25 * 3600]  # fmt: skip
    hours = working_hours(spring, BERLIN)
    assert hours.end_s - hours.start_s == 9 * 3600
    assert datetime.fromtimestamp(hours.start_s, BERLIN).hour == 9


def test_a_time_that_the_clock_skips_is_shown_as_it_will_be() -> None:
    start = moment_s(date(2026, 3, 29), time(2, 30), BERLIN)
    assert datetime.fromtimestamp(start, BERLIN).hour == 3


def test_the_zone_is_that_of_most_own_events_and_else_the_usual_one() -> None:
    def event(zone: str, at: int, *, own: bool = True) -> CalendarEvent:
        return CalendarEvent("e", "t", at, at + 1, zone, is_own=own)

    assert zone_of([], SHANGHAI) == SHANGHAI
    assert zone_of([event("Europe/Berlin", 1, own=False)], SHANGHAI) == SHANGHAI
    assert zone_of([event("Mars/Base", 9), event("", 8)], SHANGHAI) == SHANGHAI
    tied = [event("Asia/Shanghai", 1), event("Europe/Berlin", 2)]
    assert zone_of(tied, SHANGHAI) == BERLIN, "the latest"
    assert zone_of([*tied, event("Asia/Shanghai", 0)], BERLIN) == SHANGHAI


@every_row(
    ("words", "day", "at", "part"),
    [
        ("Thursday", 26, "", ""),
        ("on Thursday afternoon", 26, "", "afternoon"),
        ("tomorrow at 3 pm", 26, "15:00", ""),
        ("明天下午三点", 26, "15:00", ""),
        ("周五上午", 27, "", "morning"),
        ("2026-11-30", 30, "", ""),
        ("2026-11-30T08:00:00+00:00", 30, "16:00", ""),
    ],
)
def test_a_day_or_a_time_is_read_as_it_is_said(words: str, day: int, at: str, part: str) -> None:
    said = parse_time(words, NOW)
    assert (said.day.day, f"{said.at:%H:%M}" if said.at else "", said.part) == (day, at, part)


@every_row("words", ["by Friday", "before Friday", "周五前", "周五之前完成", "Friday"])
def test_an_end_is_a_day(words: str) -> None:
    said = parse_end(words, NOW)
    assert said
    assert (said.day, said.at) == (date(2026, 11, 27), None)


@every_row(
    ("words", "first", "last"),
    [
        ("this week", 25, 29), ("本周", 25, 29), ("tomorrow", 26, 26), ("下周五", 4, 4),
        ("next week", 30, 6), ("下周", 30, 6), ("", 25, 25), ("2026-11-27", 27, 27),
    ],
)  # fmt: skip
def test_a_question_is_about_days(words: str, first: int, last: int) -> None:
    assert tuple(one.day for one in parse_days(words, NOW.date())) == (first, last)


@every_row("words", ["Thursday or Friday", "between 3 and 4", "soon", "yesterday"])
def test_what_may_mean_several_times_or_none_is_asked(words: str) -> None:
    with pytest.raises(AgendaRefused):
        parse_time(words, NOW)


def test_plans_come_back_from_a_button_as_they_were() -> None:
    bob = Attendee("ou_bob", "Bob")
    meeting = MeetingPlan("launch", 1_796_306_400, 1_796_310_000, "Asia/Shanghai", (bob,))
    task = TaskPlan("slides", bob, 1_796_306_400, False, "Asia/Shanghai")
    assert MeetingPlan.of_row(meeting.row()) == meeting
    assert TaskPlan.of_row(task.row()) == task
    assert meeting.moved_to(BERLIN).moved_to(SHANGHAI) == meeting
    assert task.moved_to(BERLIN).moved_to(SHANGHAI) == task


def _whole(first: date, last: date) -> CalendarEvent:
    """An event of whole days, as Feishu dates it: in UTC, with its last day."""
    start_s, end_s = (
        int(datetime(one.year, one.month, one.day, tzinfo=UTC).timestamp()) for one in (first, last)
    )
    return CalendarEvent("e", "leave", start_s, end_s, "")


@every_row("zone", ["Asia/Shanghai", "America/Los_Angeles", "Pacific/Kiritimati", "UTC"])
def test_whole_days_keep_their_owner_busy_to_the_end_of_the_last_wherever_they_are(
    zone: str,
) -> None:
    here, monday, tuesday = ZoneInfo(zone), date(2026, 11, 30), date(2026, 12, 1)
    one, both = _whole(monday, monday), _whole(monday, tuesday)
    assert event_span(one, here) == whole_days(monday, monday, here)
    assert event_span(both, here) == whole_days(monday, tuesday, here)
    assert times_of_events([one], here) == (whole_days(monday, monday, here),)

    person = PersonAgenda("Ann", True, times_of_events([both], here), (both,))
    noon = datetime(2026, 11, 29, 12, tzinfo=here)
    said = agenda_outcome([person], (monday, tuesday), noon, is_alone=True)
    assert [day["events"][0]["title"] for day in said.fields["days"]] == ["leave", "leave"]
    assert [day["free"] for day in said.fields["days"]] == [[], []]


def test_a_meeting_takes_the_time_that_it_says() -> None:
    meeting = CalendarEvent("e", "launch", 1_000, 4_600, "Europe/Berlin")
    assert event_span(meeting, BERLIN) == BusySpan(1_000, 4_600)
