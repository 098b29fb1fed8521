"""A day that is named, and which day it is to who looks ahead or back."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.dates import (
    COMING_DAY_EXPRESSIONS,
    DATE_EXPRESSIONS,
    PAST_DAY_EXPRESSIONS,
    TODAY_EXPRESSION,
    WEEKDAY_EXPRESSIONS,
    named_days,
    next_date,
    past_dates,
    read_number,
)
from tests.support.rows import every_row

ALL = (
    *DATE_EXPRESSIONS,
    *PAST_DAY_EXPRESSIONS,
    TODAY_EXPRESSION,
    *COMING_DAY_EXPRESSIONS,
    *WEEKDAY_EXPRESSIONS,
)
TODAY_IS = date(2026, 11, 25)  # a Wednesday
DAYS = st.dates(date(1950, 1, 1), date(2080, 12, 31))
FORMS = (
    "{d:%Y-%m-%d}", "{d:%Y/%m/%d}", "{d.year}年{d.month}月{d.day}日",
    "{d.year}年{d.month}月{d.day}号", "{d:%B} {d.day}, {d.year}", "on {d:%b} {d.day} {d.year}",
    "the {d.day} of {d:%B} {d.year}",
)  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@given(day=DAYS, today=DAYS)
def test_a_full_date_is_that_date_in_both_directions(form: str, day: date, today: date) -> None:
    text = f"about the launch {form.format(d=day)} at ten"
    (found,) = named_days(text, ALL, today)
    assert next_date(found, today) == f"{day}"
    assert past_dates(found, today) == ([day] if day <= today else [])


@given(day=DAYS, today=DAYS)
def test_without_a_year_the_next_and_the_latest_are_meant(day: date, today: date) -> None:
    (found,) = named_days(f"{day.month}月{day.day}日", ALL, today)
    ahead = date.fromisoformat(next_date(found, today)) if (day.month, day.day) != (2, 29) else day
    assert past_dates(found, today)[0] <= today
    assert (ahead.month, ahead.day) == (day.month, day.day)
    if (day.month, day.day) != (2, 29):
        assert today <= ahead <= today + timedelta(days=366)


@every_row(
    ("text", "ahead", "back"),
    [
        ("周五", "2026-11-27", "2026-11-20"),
        ("Friday", "2026-11-27", "2026-11-20"),
        ("周三", "2026-12-02", "2026-11-25"),
        ("on Wednesday", "2026-12-02", "2026-11-18"),
        ("下周五", "2026-12-04", "2026-12-04"),
        ("next Friday", "2026-12-04", "2026-12-04"),
        ("上周五", "2026-11-20", "2026-11-20"),
        ("15号", "2026-12-15", "2026-11-15"),
        ("下个月15号", "2026-12-15", ""),
        ("the 15th of last month", "2026-10-15", "2026-10-15"),
        ("明年3月1日", "2027-03-01", ""),
        ("廿八号", "2026-11-28", "2026-10-28"),
        ("5/4", "", "2026-05-04"),
        ("30 February", "2027-02-30", ""),
        ("十二三号", "2026-12-00", ""),
    ],
)
def test_both_directions(text: str, ahead: str, back: str) -> None:
    (found,) = named_days(text, ALL, TODAY_IS)
    assert next_date(found, TODAY_IS) == ahead
    assert f"{next(iter(past_dates(found, TODAY_IS)), '')}" == back


@every_row(
    "text", ["周三次会", "上周一起去的", "5月4", "3/4", "一号", "15号", "Mondays", "on the 3rd"]
)
def test_what_may_be_something_else_is_not_certain(text: str) -> None:
    (found,) = named_days(text, ALL, TODAY_IS)
    assert not found.certain


@given(st.integers(0, 99))
def test_chinese_numbers_up_to_99_are_read(value: int) -> None:
    tens, ones = divmod(value, 10)
    digits = "零一二三四五六七八九"
    written = (digits[tens] if tens > 1 else "") + ("十" if tens else "")
    written += digits[ones] if ones or not tens else ""
    assert read_number(written) == value
    assert read_number(str(value)) == value


@every_row("written", ["十二三", "二三", "十十", "", "many"])
def test_what_is_no_number_is_none(written: str) -> None:
    assert read_number(written) is None
