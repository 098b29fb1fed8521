"""Reads times of day, computes when something repeats, and words days and times.

A recurring time follows the wall clock: 9:00 stays 9:00 when summer time begins or ends. A
skipped time comes as much later as the clock jumps (PEP 495), and one that is shown twice comes
the first time only."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

from bot.text.languages import Catalogue, Language
from memory.dates import COUNT, read_number
from memory.tables.timers import Repeats
from memory.text import one_line

PERIOD_PATTERN = re.compile(
    r"凌晨|半夜|深夜|午夜|夜里|清晨|早上|早晨|上午|中午|下午|傍晚|晚上|(?<=天)[早晚]"
    r"|(?:\bin the |\bthis |(?<=tomorrow )|(?<=day )|(?<=\d )|(?<=[ap]m )|(?<=every ))"
    r"(?P<en>morning|afternoon|evening|night)\b|\bat night\b|\btonight\b",
    re.IGNORECASE,
)
TIME_PATTERN = re.compile(
    r"(?:\bat |@ ?)?(?<!\d)(?P<h>\d{1,2})[:：](?P<m>\d{2})(?!\d)(?: ?(?P<ap>[ap])\.?m\b\.?)?"
    r"|(?:\bat )?\b(?P<h2>\d{1,2}) ?(?P<ap2>[ap])\.?m\b\.?"
    r"|\bat (?P<h3>\d{1,2})(?: o'?clock)?\b(?![/.]\d)|\b(?P<h4>\d{1,2}) o'?clock\b"
    r"|\b(?:at )?(?P<word>noon|midnight)\b"
    rf"|(?P<zh>{COUNT})[点时](?:钟|整)?(?P<zm>半|[一三]刻|{COUNT}分?)?",
    re.IGNORECASE,
)
_NIGHT_WORDS = ("下午", "傍晚", "晚上", "晚", "afternoon", "evening", "night", "tonight")
_DEEP_NIGHT = ("半夜", "深夜", "午夜", "夜里")
_DAWN = 6
_MORNING_WORDS = ("凌晨", "清晨", "早上", "早晨", "上午", "早", "morning")
_QUARTERS = {"": 0, "半": 30, "一刻": 15, "三刻": 45}
_NOON = 12

_LONGEST_MONTH = 31  # days; on the 31st is on the last day
_DAY = timedelta(days=1)
_FRIDAY = 4

say = Catalogue(__file__).say


@dataclass(frozen=True, slots=True)
class TimeOfDay:
    """`sure`: the half of the day is known. `is_midnight`: which of two nights is not known."""

    hour: int
    minute: int
    sure: bool = True
    is_midnight: bool = False


def read_time_alone(text: str) -> TimeOfDay | None:
    """The time of day that is all of `text`: `18:00`, `9`, “at 6 pm”, `下午六点`."""
    period = PERIOD_PATTERN.search(text)
    rest = one_line(text.replace(period[0], " ") if period else text)
    match = TIME_PATTERN.fullmatch(f"at {rest}" if rest.isdecimal() else rest)
    return read_time(match, period[0] if period else "") if match else None


def read_time(match: re.Match[str], period: str) -> TimeOfDay | None:
    """What a match of `TIME` shows in a `PERIOD` of the day ("": none is named); None for what no
    clock shows."""
    if word := match["word"]:
        return TimeOfDay(12, 0) if word.lower() == "noon" else TimeOfDay(0, 0, is_midnight=True)
    hour_text = match["zh"] or match["h"] or match["h2"] or match["h3"] or match["h4"]
    hour, minute = read_number(hour_text), _minute_of(match)
    half = (match["ap"] or match["ap2"] or "").lower()
    if hour is None or minute is None or hour > 24 or minute > 59:
        return None
    if period.endswith(_DEEP_NIGHT) and not half:
        is_late = _DAWN <= hour < _NOON
        hour = hour % _NOON + _NOON if is_late else hour % _NOON if hour <= _NOON else hour
        return TimeOfDay(hour % 24, minute, is_midnight=hour < _DAWN)
    if half == "a" and period.endswith("night"):
        return TimeOfDay(hour % _NOON, minute, is_midnight=True)
    if half == "p" or period.endswith(_NIGHT_WORDS) or (period == "中午" and hour < 6):
        if hour % _NOON == 0 and not half and period.endswith(("晚上", "晚", "night")):
            return TimeOfDay(0, minute, is_midnight=True)  # 晚上12点 is the next day's
        return TimeOfDay((hour + 12 if hour < _NOON else hour) % 24, minute)
    if half == "a" or period.endswith(_MORNING_WORDS):
        return TimeOfDay(hour % _NOON, minute)
    exact = bool(match["h"]) and (hour_text.startswith("0") or hour >= 7)
    return TimeOfDay(hour % 24, minute, exact or not 0 < hour < _NOON)


def _minute_of(match: re.Match[str]) -> int | None:
    minute_text = match["m"] or match["zm"] or ""
    return (
        _QUARTERS[minute_text]
        if minute_text in _QUARTERS
        else read_number(minute_text.removesuffix("分"))
    )


def moment_at_wall_clock(local: datetime, zone: ZoneInfo) -> datetime:
    """The moment, in UTC, when the clock of `zone` shows the naive `local`, or would. Where it does
    so twice, `local.fold` says which is meant."""
    return local.replace(tzinfo=zone).astimezone(UTC)


def is_skipped(local: datetime, zone: ZoneInfo) -> bool:
    """Whether the clock of `zone` never shows the naive `local`."""
    return moment_at_wall_clock(local, zone).astimezone(zone).replace(tzinfo=None) != local


def next_occurrence(
    local: datetime, repeats: Repeats, zone: ZoneInfo, after: datetime
) -> datetime | None:
    """The first time later than `after` (aware) of what begins at the naive `local`; in UTC. None:
    there is none any more."""
    if repeats == "once":
        only = moment_at_wall_clock(local, zone)
        return only if only > after else None
    start = max(0, _skippable(local, repeats, after.astimezone(zone).replace(tzinfo=None)))
    moments = (moment_at_wall_clock(one, zone) for one in _occurrences_from(local, repeats, start))
    return next(moment for moment in moments if moment > after)


def last_occurrence(
    local: datetime, repeats: Repeats, zone: ZoneInfo, before: datetime
) -> datetime:
    """The last time earlier than `before` (aware) of what repeats as it does at the naive `local`,
    also where it began later; in UTC."""
    start = _skippable(local, repeats, before.astimezone(zone).replace(tzinfo=None)) - 4
    moments = (moment_at_wall_clock(one, zone) for one in _occurrences_from(local, repeats, start))
    return list(takewhile(lambda moment: moment < before, moments))[-1]


def _skippable(local: datetime, repeats: Repeats, now: datetime) -> int:
    """So many steps from `local` that the next is certainly not in the future of `now`."""
    if repeats == "monthly":
        return (now.year - local.year) * 12 + now.month - local.month - 2
    days = (now - local).days - 3
    return days // 7 - 1 if repeats == "weekly" else days


def _occurrences_from(local: datetime, repeats: Repeats, start: int) -> Iterator[datetime]:
    """The wall clock times of what repeats, from step `start` on."""
    step = start
    while True:
        if repeats == "monthly":
            yield _months_later(local, step)
        elif repeats == "weekly":
            yield local + 7 * step * _DAY
        elif (day := local + step * _DAY).weekday() <= _FRIDAY or repeats == "daily":
            yield day
        step += 1


def _months_later(local: datetime, months: int) -> datetime:
    year, month = divmod(local.year * 12 + local.month - 1 + months, 12)
    return local.replace(
        year=year, month=month + 1, day=min(local.day, monthrange(year, month + 1)[1])
    )


def real_day(day: str) -> str:
    """The ISO date `day`; of one that its month lacks the same day of the month before, from which
    it is counted monthly."""
    year, month, number = map(int, day.split("-")) if day else (1, 1, 1)
    before = f"{year - (month == 1):04}-{(month - 2) % 12 + 1:02}-{number:02}"
    return before if day and 28 < number <= 31 and number > monthrange(year, month)[1] else day


def day_text(at: datetime, language: Language, *, now: datetime) -> str:
    """“30 Nov”."""
    month = _one_of("months", at.month - 1, language)
    key = "day" if at.year == now.year else "day-of-year"
    return say(key, language, day=at.day, month=month, year=at.year)


def moment_text(at: datetime, language: Language, *, now: datetime) -> str:
    """“30 Nov at 09:00”."""
    return say("moment", language, date=day_text(at, language, now=now), time=f"{at:%H:%M}")


def weekday_text(at: datetime, language: Language, *, now: datetime) -> str:
    """“Mon 30 Nov”."""
    weekday = _one_of("short-weekdays", at.weekday(), language)
    date = day_text(at, language, now=now)
    return say("weekday-and-day", language, weekday=weekday, date=date)


def coming_text(at: datetime, language: Language, *, now: datetime) -> str:
    """“Mon 30 Nov at 09:00”: people know a day that is to come by its weekday."""
    weekday = _one_of("short-weekdays", at.weekday(), language)
    date = day_text(at, language, now=now)
    return say("coming", language, weekday=weekday, date=date, time=f"{at:%H:%M}")


def repetition_text(repeats: str, at: datetime, language: Language) -> str:
    """“every Monday at 09:00”; `repeats` as in `memory.tables.timers`, but not `once`."""
    is_last = repeats == "monthly" and at.day == _LONGEST_MONTH
    return say(
        "every-monthly-last" if is_last else f"every-{repeats}",
        language,
        time=f"{at:%H:%M}",
        weekday=_one_of("whole-weekdays", at.weekday(), language),
        nth=_one_of("ordinals", at.day - 1, language),
    )


def _one_of(key: str, number: int, language: Language) -> str:
    return say(key, language).split()[number]
