"""Days and times are said as people say them, in both languages."""

from __future__ import annotations

from datetime import datetime

from bot.text import times
from bot.text.languages import Language
from tests.support.rows import every_row

NOW = datetime(2026, 11, 23, 9)  # noqa: DTZ001
MONDAY = datetime(2026, 11, 30, 9)  # noqa: DTZ001


@every_row(
    ("language", "day", "moment", "coming"),
    [
        ("en", "30 Nov", "30 Nov at 09:00", "Mon 30 Nov at 09:00"),
        ("zh", "11月30日", "11月30日 09:00", "11月30日（周一）09:00"),
    ],
)
def test_a_day_is_named_without_its_year(
    language: Language, day: str, moment: str, coming: str
) -> None:
    assert times.day_text(MONDAY, language, now=NOW) == day
    assert times.moment_text(MONDAY, language, now=NOW) == moment
    assert times.coming_text(MONDAY, language, now=NOW) == coming


def test_another_year_is_named() -> None:
    assert times.coming_text(MONDAY.replace(year=2027), "en", now=NOW) == "Tue 30 Nov 2027 at 09:00"
    assert (
        times.coming_text(MONDAY.replace(year=2027), "zh", now=NOW) == "2027年11月30日（周二）09:00"
    )


@every_row(
    ("repeats", "en", "zh"),
    [
        ("daily", "every day at 09:00", "每天 09:00"),
        ("weekdays", "on weekdays at 09:00", "每个工作日 09:00"),
        ("weekly", "every Monday at 09:00", "每周一 09:00"),
        ("monthly", "on the 30th of every month at 09:00", "每月 30 日 09:00"),
    ],
)
def test_what_repeats_is_named_by_its_day(repeats: str, en: str, zh: str) -> None:
    assert times.repetition_text(repeats, MONDAY, "en") == en
    assert times.repetition_text(repeats, MONDAY, "zh") == zh


def test_the_31st_of_every_month_is_its_last_day() -> None:
    last = MONDAY.replace(month=10, day=31)
    assert times.repetition_text("monthly", last, "en") == "on the last day of every month at 09:00"
    assert times.repetition_text("monthly", last, "zh") == "每月最后一天 09:00"
