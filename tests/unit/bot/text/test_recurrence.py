"""When something that repeats comes next: over the change of days, months and clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from bot.text.times import is_skipped, last_occurrence, moment_at_wall_clock, next_occurrence
from memory.tables.timers import REPEATS, Repeats
from tests.support.rows import every_row

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = [BERLIN, *map(ZoneInfo, ("Asia/Shanghai", "America/St_Johns", "Australia/Lord_Howe"))]


def following(local: str, repeats: Repeats, after: str, count: int) -> list[str]:
    """The next times after `after`, as the clocks of Berlin show them."""
    begins = datetime.fromisoformat(local)
    moment = datetime.fromisoformat(after).replace(tzinfo=BERLIN)
    found = []
    for _ in range(count):
        moment = next_occurrence(begins, repeats, BERLIN, moment) or moment
        found.append(f"{moment.astimezone(BERLIN):%Y-%m-%d %H:%M%z}")
    return found


def test_the_hour_stays_when_summer_time_begins_and_ends() -> None:
    assert following("2026-03-27T09:00", "daily", "2026-03-28T08:00", 3) == [
        "2026-03-28 09:00+0100",
        "2026-03-29 09:00+0200",
        "2026-03-30 09:00+0200",
    ]
    assert following("2026-10-17T09:00", "weekly", "2026-10-24T08:00", 2) == [
        "2026-10-24 09:00+0200",
        "2026-10-31 09:00+0100",
    ]


def test_a_time_that_the_clock_skips_comes_after_the_change_and_one_shown_twice_once() -> None:
    assert following("2026-03-27T02:30", "daily", "2026-03-28T12:00", 2) == [
        "2026-03-29 03:30+0200",
        "2026-03-30 02:30+0200",
    ]
    assert following("2026-10-01T02:30", "daily", "2026-10-24T12:00", 2) == [
        "2026-10-25 02:30+0200",
        "2026-10-26 02:30+0100",
    ]
    assert is_skipped(datetime(2026, 3, 29, 2, 30), BERLIN)  # noqa: DTZ001
    assert not is_skipped(datetime(2026, 10, 25, 2, 30), BERLIN)  # noqa: DTZ001


def test_weekdays_leave_out_the_weekend_and_months_without_the_day_have_it_last() -> None:
    assert following("2026-11-01T08:00", "weekdays", "2026-11-19T20:00", 2) == [
        "2026-11-20 08:00+0100",
        "2026-11-23 08:00+0100",
    ]
    assert following("2027-12-31T08:00", "monthly", "2027-12-31T09:00", 3) == [
        "2028-01-31 08:00+0100",
        "2028-02-29 08:00+0100",
        "2028-03-31 08:00+0200",
    ]


def test_once_comes_once() -> None:
    assert following("2026-11-23T08:00", "once", "2026-11-22T08:00", 1) == ["2026-11-23 08:00+0100"]
    late = datetime(2026, 11, 24, tzinfo=UTC)
    assert next_occurrence(datetime(2026, 11, 23, 8), "once", BERLIN, late) is None  # noqa: DTZ001


@given(
    local=st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)),  # noqa: DTZ001
    after=st.datetimes(datetime(2020, 1, 1), datetime(2032, 1, 1)),  # noqa: DTZ001
    zone=st.sampled_from(ZONES),
    repeats=st.sampled_from([one for one in REPEATS if one != "once"]),
)
def test_the_next_is_later_is_on_the_grid_and_nothing_lies_between(
    local: datetime, after: datetime, zone: ZoneInfo, repeats: Repeats
) -> None:
    local, now = local.replace(second=0, microsecond=0), after.replace(tzinfo=UTC)
    found = next_occurrence(local, repeats, zone, now)
    assert found is not None
    assert found > now
    assert found >= moment_at_wall_clock(local, zone)
    longest = {"daily": 1, "weekdays": 3, "weekly": 7, "monthly": 31}[repeats]
    begins = max(now, moment_at_wall_clock(local, zone))
    assert found - begins <= timedelta(days=longest, hours=2)
    wall = found.astimezone(zone).replace(tzinfo=None)
    if not is_skipped(wall.replace(hour=local.hour, minute=local.minute), zone):
        assert (wall.hour, wall.minute) == (local.hour, local.minute)


@given(
    local=st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)),  # noqa: DTZ001
    days=st.integers(40, 1500),
    zone=st.sampled_from(ZONES),
    repeats=st.sampled_from([one for one in REPEATS if one != "once"]),
)
def test_before_each_time_is_the_one_that_it_follows(
    local: datetime, days: int, zone: ZoneInfo, repeats: Repeats
) -> None:
    local = local.replace(second=0, microsecond=0)
    due = next_occurrence(
        local, repeats, zone, moment_at_wall_clock(local, zone) + timedelta(days=days)
    )
    assert due is not None
    before = last_occurrence(local, repeats, zone, due)
    assert before < due
    assert next_occurrence(local, repeats, zone, before) == due


def test_the_time_before_is_told_by_the_wall_clock_and_also_before_the_first() -> None:
    summer_ended = datetime(2026, 10, 25, 18, 0, tzinfo=BERLIN)
    began = datetime(2026, 10, 25, 18, 0)  # noqa: DTZ001
    assert last_occurrence(began, "daily", BERLIN, summer_ended) == datetime(
        2026, 10, 24, 18, 0, tzinfo=BERLIN
    )
    monday = datetime(2026, 11, 23, 18, 0, tzinfo=BERLIN)
    assert last_occurrence(began, "weekdays", BERLIN, monday).astimezone(BERLIN).weekday() == 4
    santiago = ZoneInfo("America/Santiago")  # its clock skips the hour after midnight
    due = datetime(2026, 9, 6, 1, 0, tzinfo=santiago)
    midnight = datetime(2026, 9, 1, 0, 0)  # noqa: DTZ001
    assert last_occurrence(midnight, "daily", santiago, due) == datetime(
        2026, 9, 5, 0, 0, tzinfo=santiago
    )


@every_row("repeats", REPEATS)
def test_ten_years_back_costs_a_few_steps(repeats: Repeats) -> None:
    now = datetime(2036, 5, 5, tzinfo=UTC)
    for _ in range(200):
        next_occurrence(datetime(2020, 1, 31, 8), repeats, BERLIN, now)  # noqa: DTZ001
