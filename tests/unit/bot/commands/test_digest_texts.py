"""What `/digest …` asks for, and from when a digest tells."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from bot.commands.digest_texts import Wanted, first, wanted
from bot.commands.digesting import begins

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("", Wanted("here")),
        ("today", Wanted("today")),
        ("今天", Wanted("today")),
        ("thread", Wanted("thread")),
        ("off", Wanted("off")),
        ("关闭", Wanted("off")),
        ("daily 18:00", Wanted("schedule", "daily", None, (18, 0))),
        ("daily at 9", Wanted("schedule", "daily", None, (9, 0))),
        ("every day 18:30", Wanted("schedule", "daily", None, (18, 30))),
        ("weekdays 8:05", Wanted("schedule", "weekdays", None, (8, 5))),
        ("weekly mon 9:00", Wanted("schedule", "weekly", 0, (9, 0))),
        ("weekly sunday 9:00", Wanted("schedule", "weekly", 6, (9, 0))),
        ("每天 18:00", Wanted("schedule", "daily", None, (18, 0))),
        ("每天18点", Wanted("schedule", "daily", None, (18, 0))),
        ("工作日 18:00", Wanted("schedule", "weekdays", None, (18, 0))),
        ("每周五 17:30", Wanted("schedule", "weekly", 4, (17, 30))),
        ("每周日 17:30", Wanted("schedule", "weekly", 6, (17, 30))),
        ("daily 25:00", Wanted("unclear")),
        ("daily 18:75", Wanted("unclear")),
        ("daily", Wanted("unclear")),
        ("sometimes", Wanted("unclear")),
    ],
)
def test_arguments(argument: str, expected: Wanted) -> None:
    assert wanted(argument) == expected


def test_a_week_begins_on_its_day() -> None:
    now = datetime(2026, 11, 25, 10, 0, tzinfo=BERLIN)
    assert first(wanted("weekly mon 9:00"), now) == datetime(2026, 11, 23, 9)  # noqa: DTZ001
    assert first(wanted("daily 18:00"), now) == datetime(2026, 11, 25, 18)  # noqa: DTZ001


def test_it_tells_from_the_time_before_by_the_wall_clock() -> None:
    due = datetime(2026, 10, 25, 18, 0, tzinfo=BERLIN)  # summer time ended that night
    assert begins("daily", due, BERLIN).astimezone(BERLIN).hour == 18
    assert (due.astimezone(UTC) - begins("daily", due, BERLIN)).total_seconds() == 25 * 3600
    monday = datetime(2026, 11, 23, 18, 0, tzinfo=BERLIN)
    assert begins("weekdays", monday, BERLIN).astimezone(BERLIN).weekday() == 4
