"""A day as somebody named it, and which day it is. Pure.

A question looks back and a reminder looks ahead: `5月4日` or “Friday” is the latest of `past_dates`
to the one and the `next_date` to the other. Weeks begin on Monday.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

YEARS_BACK = 5


@dataclass(frozen=True, slots=True)
class Day:
    """A day as it is named in `text[start:end]`; None is what was not said.

    `month` and `day` may be of no date there is. `months`, `weeks` and `ahead` (days) count from
    today's. `either_way`: month and day may be the other way round. `may_be_today`: whether
    a weekday may be today itself, None: only when looking back. `certain`: the words can hardly
    mean anything but a day.
    """

    start: int
    end: int
    year: int | None = None
    month: int | None = None
    day: int = 0
    months: int | None = None
    weekday: int | None = None
    weeks: int | None = None
    ahead: int | None = None
    either_way: bool = False
    may_be_today: bool | None = False
    certain: bool = True


def next_date(day: Day, today: date) -> str:
    """The ISO date on which it comes next, maybe one that does not exist; "" where day and month
    cannot be told apart."""
    if day.either_way:
        return ""
    if day.ahead is not None:
        return f"{today + timedelta(days=day.ahead)}"
    if day.weekday is not None:
        return f"{_next_weekday(day, day.weekday, today)}"
    if day.month is None:
        months = (day.day < today.day) if day.months is None else day.months
        first = _month_of(today, months)
        return f"{first:%Y-%m}-{day.day:02}"
    of_year = day.year or today.year + ((day.month, day.day) < (today.month, today.day))
    return f"{of_year:04}-{day.month:02}-{day.day:02}"


def past_dates(day: Day, today: date) -> list[date]:
    """The dates that may be meant by who looks back, best first; none in the future where a year
    or a week was not named."""
    if day.ahead is not None:
        return [today + timedelta(days=day.ahead)]
    if day.weekday is not None:
        return [_past_weekday(day, day.weekday, today)]
    if day.month is None:
        months = range(0, -12, -1) if day.months is None else [day.months]
        firsts = [_month_of(today, one) for one in months]
        return _existing([(one.year, one.month, day.day) for one in firsts], today)
    years = [day.year] if day.year else [today.year - back for back in range(YEARS_BACK)]
    orders = [(day.month, day.day), (day.day, day.month)][: 1 + day.either_way]
    readings = [_existing([(one, *order) for one in years], today) for order in orders]
    return [one for of_a_year in zip(*readings, strict=False) for one in of_a_year]


def _next_weekday(day: Day, weekday: int, today: date) -> date:
    if day.weeks is not None:
        return _of_week(today, day.weeks, weekday)
    ahead = (weekday - today.weekday()) % 7
    return today + timedelta(days=ahead or (0 if day.may_be_today else 7))


def _past_weekday(day: Day, weekday: int, today: date) -> date:
    if day.weeks is not None:
        return _of_week(today, day.weeks, weekday)
    back = (today.weekday() - weekday) % 7
    return today - timedelta(days=back or (7 if day.may_be_today is False else 0))


def _of_week(today: date, weeks: int, weekday: int) -> date:
    return today + timedelta(days=weekday - today.weekday() + 7 * weeks)


def _month_of(today: date, months: int) -> date:
    of_year, month_before = divmod(today.year * 12 + today.month - 1 + months, 12)
    return date(of_year, month_before + 1, 1)


def _existing(dates: Sequence[tuple[int, int, int]], today: date) -> list[date]:
    days = []
    for one in dates:
        try:
            days.append(date(*one))
        except ValueError:
            continue
    return [one for one in days if one <= today]
