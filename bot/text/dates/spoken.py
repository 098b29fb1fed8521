"""Days and times as people say them: “30 Nov at 09:00”, “11月30日 09:00”. Pure.

A year is named where it is not that of `now`.
"""

from __future__ import annotations

from datetime import datetime

from bot.text.catalogues import Catalogue
from bot.text.languages import Language

say = Catalogue(__file__).say


def day(at: datetime, language: Language, *, now: datetime) -> str:
    """“30 Nov”."""
    month = _one_of("months", at.month - 1, language)
    key = "day" if at.year == now.year else "day-of-year"
    return say(key, language, day=at.day, month=month, year=at.year)


def moment(at: datetime, language: Language, *, now: datetime) -> str:
    """“30 Nov at 09:00”."""
    return say("moment", language, date=day(at, language, now=now), time=f"{at:%H:%M}")


def weekday_and_day(at: datetime, language: Language, *, now: datetime) -> str:
    """“Mon 30 Nov”."""
    weekday = _one_of("short-weekdays", at.weekday(), language)
    date = day(at, language, now=now)
    return say("weekday-and-day", language, weekday=weekday, date=date)


def coming(at: datetime, language: Language, *, now: datetime) -> str:
    """“Mon 30 Nov at 09:00”: people know a day that is to come by its weekday."""
    weekday = _one_of("short-weekdays", at.weekday(), language)
    date = day(at, language, now=now)
    return say("coming", language, weekday=weekday, date=date, time=f"{at:%H:%M}")


def often(repeats: str, at: datetime, language: Language) -> str:
    """“every Monday at 09:00”; `repeats` as in `memory.tables.timers`, but not `once`."""
    return say(
        f"every-{repeats}",
        language,
        time=f"{at:%H:%M}",
        weekday=_one_of("whole-weekdays", at.weekday(), language),
        nth=_one_of("ordinals", at.day - 1, language),
    )


def _one_of(key: str, number: int, language: Language) -> str:
    return say(key, language).split()[number]
