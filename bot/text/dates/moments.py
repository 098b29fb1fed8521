"""When something is to happen, as people say it in English and Chinese. Pure.

What is not said is taken as people at work mean it: “at 3” is in the afternoon, a time without a
day is its next one, “Thursday” the next Thursday. What may mean two things means none: every word
about time is accounted for, or has to be asked about.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal

from bot.text.dates.repetition import REPETITION, UNKNOWN, period_of, read_repetition
from bot.text.dates.time_normalisation import in_usual_words, without_content
from bot.text.dates.time_of_day import PERIOD, TIME, TimeOfDay, read_time
from memory.dates.days import Day, next_date
from memory.dates.expressions import (
    DATES,
    DAYS,
    named_days,
)
from memory.dates.words import COUNT, ENGLISH_NUMBER, WEEK_ZH, number, unit
from memory.tables.timers import Repeats

Problem = Literal["", "missing", "several", "often", "halves"]

_MINUTES = {"minute": 1, "hour": 60, "day": 1440, "week": 10080}
_A_DAY = 1440
_COUNT = rf"(?P<half>half an? )?(?P<n>\d{{1,4}}|{ENGLISH_NUMBER})? ?"
_UNIT = r"(?P<unit>min(?:ute)?s?|m|hours?|hrs?|h|days?|d|weeks?)\b"
_UNIT_ZH = f"(?:分钟|小时|钟头|天|{WEEK_ZH})"
_IN = (
    re.compile(rf"\bin {_COUNT}{_UNIT}(?: from (?:now|today))?", re.IGNORECASE),
    re.compile(rf"\b{_COUNT}{_UNIT} from (?:now|today)\b", re.IGNORECASE),
    re.compile(
        rf"(?P<past>再?过)?(?P<n>{COUNT}|半)个?(?P<half>半)?(?P<unit>{_UNIT_ZH})"
        r"(?(past)(?:之?以?后)?|(?:之?以?后))"
    ),
)
_TO = r"[-–—~～至]|到(?=[\d零一二三四五六七八九十两])"
_AROUND = re.compile(rf"(?:之|以)?[前后](?!天)|(?:{_TO})", re.IGNORECASE)
_BEFORE = re.compile(
    rf"(?:\b(?:before|until|till|by|after|since|from|between) (?:the )?|{_TO})$", re.IGNORECASE
)
_RELATIVE = re.compile(
    r"\b(?:min(?:ute)?s?|hours?|hrs?|days?|weeks?|months?)"
    r" (?:before|prior|ahead|earlier|after(?! tomorrow)|from)"
    rf"|早晚(?=各?(?:{COUNT}点|\d))|提前|{COUNT}个?半?{_UNIT_ZH}(?:之|以)?前",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"\b(?:next|this|the) (?:week|month|year|quarter|weekend)\b|\bweekend\b|\bend of\b"
    rf"|\bin {_COUNT}(?:months?|years?)\b"
    rf"|下{{1,4}}个?(?:{WEEK_ZH}|月|季)|周末|[月年季]底|[月年]初|{COUNT}个?[月年](?:之|以)?后"
    r"|元旦|春节|除夕|元宵|清明|端午|中秋|国庆|\b(?:christmas|new year|easter|thanksgiving)\b",
    re.IGNORECASE,
)

_LONGEST = 4000


@dataclass(frozen=True, slots=True)
class When:
    """`at` is ISO 8601 without an offset, maybe of a day that does not exist; "" where there is a
    `problem`. `rest` is the text without the words about time.

    missing: day or time is not said. several: more than one time, or one that something is only to
    be before or after of. often: a repetition that there is none of. halves: morning or evening.
    """

    at: str
    repeats: Repeats
    rest: str
    problem: Problem = ""


def when(text: str, now: datetime) -> When:
    """What `text` says about the time in its first 4,000 characters, as said at `now`."""
    plain, put_back = without_content(in_usual_words(text[:_LONGEST]))
    moment = _read(plain, now.replace(tzinfo=None))
    rest = put_back(moment.rest) + text[_LONGEST:]
    return When(moment.at, moment.repeats, rest, moment.problem)


def _read(text: str, now: datetime) -> When:
    if UNKNOWN.search(text):
        return When("", "once", text, "often")
    if _RELATIVE.search(_without_in(text)):
        return When("", "once", text, "several")
    soon = next((match for one in _IN if (match := one.search(text))), None)
    rest = _without(text, soon) if soon else text
    every = None if soon else REPETITION.search(rest)
    repeats = read_repetition(every) if every else "once"
    rest = _without(rest, every) if every else rest
    if repeats == "weekdays":  # 周一到周五每天
        rest = re.sub("每天|每日", " ", rest)
    dates = list(named_days(rest, DATES, now.date()))
    clock = next((one for one in TIME.finditer(rest) if not _within(one, dates)), None)
    if clock and _is_bound(rest, clock):
        return When("", repeats, rest, "several")
    period = PERIOD.search(_blank(rest, clock))
    rest = _without(rest, *(one for one in (clock, period) if one))
    day, rest, agree = _day(rest, now.date())
    if not agree or TIME.search(rest) or any(named_days(rest, (*DAYS, *DATES), now.date())):
        return When("", repeats, rest, "several")
    if soon and not clock:
        unclear = bool(day or period)
        at = now + timedelta(minutes=_minutes(soon))
        return When("" if unclear else _iso(at), "once", rest, "several" if unclear else "")
    if soon and (_minutes(soon) % _A_DAY or day):
        return When("", repeats, rest, "several")
    if not clock or (not day and not soon and _VAGUE.search(rest)):
        return When("", repeats, rest, "missing")
    period_word = period[0] if period else period_of(every) if every else ""
    if soon:
        day = f"{now + timedelta(minutes=_minutes(soon)):%Y-%m-%d}"
    clock_time = read_time(clock, period_word.lower())
    return (
        _at(clock_time, day, now, repeats, rest)
        if clock_time
        else When("", repeats, rest, "missing")
    )


def _day(rest: str, today: date) -> tuple[str, str, bool]:
    """The day that is said, the text without it, and whether date and weekday agree."""
    date_match = next(named_days(rest, DATES, today), None)
    iso = next_date(date_match, today) if date_match else ""
    left = _without(rest, date_match) if date_match else rest
    if date_match and not iso:
        return "", left, False
    named_day = next(named_days(left, DAYS, today), None)
    if not named_day:
        return iso, left, True
    if _is_bound(left, named_day):
        return iso, left, False
    left, of_name = _without(left, named_day), next_date(named_day, today)
    if not iso:
        return of_name, left, True
    try:
        agree = date.fromisoformat(iso).weekday() == date.fromisoformat(of_name).weekday()
    except ValueError:
        agree = True  # the date does not exist, which is said later
    return iso, left, agree


def _at(clock: TimeOfDay, day: str, now: datetime, repeats: Repeats, rest: str) -> When:
    today = now.replace(hour=clock.hour, minute=clock.minute, second=0, microsecond=0)
    once, is_today = repeats == "once", day in ("", f"{now:%Y-%m-%d}")
    if clock.is_midnight and day:
        return When("", repeats, rest, "several")
    if not clock.sure and clock.hour in (5, 6):
        if not (is_today and once) or today + timedelta(hours=12) <= now:
            return When("", repeats, rest, "halves")
        today += timedelta(hours=12)
    elif not clock.sure and clock.hour < 5:
        if is_today and once and now < today:
            return When("", repeats, rest, "halves")  # said at night
        today += timedelta(hours=12)
    elif not clock.sure and is_today and once and today <= now < today + timedelta(hours=12):
        return When("", repeats, rest, "halves")
    if not day:
        today += timedelta(days=today <= now and once)
        return When(_iso(today), repeats, rest)
    return When(f"{day}T{today:%H:%M}", repeats, rest)


def _minutes(soon: re.Match[str]) -> int:
    length = _MINUTES[unit(soon["unit"])]
    if soon["n"] == "半" or (soon["half"] and soon["half"] != "半"):
        return length // 2
    return (number(soon["n"] or "a") or 0) * length + (length // 2 if soon["half"] else 0)


def _iso(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M}"


def _span(one: re.Match[str] | Day) -> tuple[int, int]:
    return (one.start, one.end) if isinstance(one, Day) else one.span()


def _is_bound(text: str, one: re.Match[str] | Day) -> bool:
    """Whether it is only the beginning or the end of the time that is meant."""
    start, end = _span(one)
    return bool(_AROUND.match(text, end) or _BEFORE.search(text[:start]))


def _within(one: re.Match[str], days: Iterable[Day]) -> bool:
    return any(day.start <= one.start() < day.end for day in days)


def _without_in(text: str) -> str:
    for one in _IN:
        text = one.sub(" ", text)
    return text


def _blank(text: str, match: re.Match[str] | None) -> str:
    """The text with digits in place of the match, so that all else stays where it is."""
    if match is None:
        return text
    return text[: match.start()] + "0" * (match.end() - match.start()) + text[match.end() :]


def _without(text: str, *parts: re.Match[str] | Day) -> str:
    """The text without these parts of it, which do not overlap."""
    for start, end in sorted(map(_span, parts), reverse=True):
        text = f"{text[:start]} {text[end:]}"
    return text
