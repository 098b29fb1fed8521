"""Reads when and how often something is to happen, in English and Chinese. Pure.

What is not said is taken as people at work mean it: “at 3” is in the afternoon, “Thursday” the
next Thursday. What may mean two things means none: every word about time is accounted for, or
has to be asked about."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from bot.text.other_clocks import names_lunar_day, names_other_zone, without_zones
from bot.text.times import PERIOD_PATTERN, TIME_PATTERN, TimeOfDay, read_time, real_day
from bot.text.usual_times import normalise_time_words, with_month_ends
from memory.dates import (
    COUNT,
    DATE_EXPRESSIONS,
    DAY_EXPRESSIONS,
    ENGLISH_NUMBER,
    MONTH,
    WEEK_ZH,
    WEEKDAY,
    WEEKDAY_ZH,
    Day,
    named_days,
    next_date,
    read_number,
    read_unit,
)
from memory.tables.timers import Repeats

MomentProblem = Literal["", "missing", "several", "often", "halves", "zone", "lunar"]
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
    rf"|早晚(?=各?(?:{COUNT}点|\d))|提前(?=[提通叫喊几半]|{COUNT})|{COUNT}个?半?{_UNIT_ZH}(?:之|以)?前",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"\b(?:next|this|the) (?:week|month|year|quarter|weekend)\b|\bweekend\b|\bend of\b"
    rf"|\bin {_COUNT}(?:months?|years?)\b"
    rf"|下{{1,4}}个?(?:{WEEK_ZH}|月|季)|周末|[月年季]底|[月年]初|{COUNT}个?[月年](?:之|以)?后"
    r"|下一?个工作日|\bnext (?:working|work|business) ?day\b"
    r"|元旦|春节|除夕|元宵|清明|端午|中秋|国庆|\b(?:christmas|new year|easter|thanksgiving)\b"
    r"|冬至|夏至|腊八|小年|平安夜|(?:圣诞|劳动|妇女|儿童|教师|情人|万圣|感恩|母亲|父亲|重阳|七夕)节"
    r"|[三五六七八九]一节|生日(?:那天|当天)|\bon (?:\w+(?:['’]s)? )?birthday\b"
    r"|\b(?:halloween|valentine['’]?s|boxing|labou?r|mother['’]?s|father['’]?s) day\b"
    r"|\bhalloween\b",
    re.IGNORECASE,
)
_LONGEST = 4000

REPETITION = re.compile(
    r"\b(?:every|each) (?P<weekdays>week ?day|working day)s?\b|\b(?:on )?(?P<on>weekdays)\b"
    r"|\b(?:every|each) (?P<daily>day|morning|evening|night)\b"
    rf"|\b(?:every|each) (?P<weekly>week|(?={WEEKDAY}\b))|\b(?:every|each) (?P<monthly>month)\b"
    rf"|\b(?P<ly>daily|weekly|monthly)\b|\b(?:on )?(?P<plural>(?={WEEKDAY}s\b))"
    rf"|每个?(?P<zh>工作日|[天日]|早上?|晚上?|(?={WEEKDAY_ZH})|{WEEK_ZH}|月)"
    rf"|(?<![下一个首后前内])(?P<bare_zh>工作日)(?=的?\s*(?:[早晚]|[上下中]午|{COUNT}[点时:：]))",
    re.IGNORECASE,
)

# Repetitions that no timer has.
UNKNOWN_REPETITION = re.compile(
    r"\b(?:every|each) (?:other|second|third|\d+|two|three|four|few|half|hour|minute|year|quarter"
    rf"|weekend|{MONTH}\b)|\b(?:on )?weekends\b"
    r"|\b(?:bi-?weekly|fortnightly|hourly|yearly|annually|quarterly)\b"
    r"|\b(?:once|twice|\w+ times) an? (?:day|week|month|year|hour)\b"
    rf"|每隔|每个?(?:{COUNT}|半|几)(?:个|天|周|小时|分钟|月|年|星期)"
    r"|每(?:个?小时|个?季|年|分钟|周末)|隔(?:天|日|周)"
    rf"|{WEEKDAY_ZH}(?:[、,，和跟及]?{WEEK_ZH}?[一二三四五六日天](?![点月号日个]))",
    re.IGNORECASE,
)

_NTH = r"(?:first|second|third|fourth|last|[1-4](?:st|nd|rd|th))"
_NTH_WEEKDAY = re.compile(
    rf"\b{_NTH} {WEEKDAY} (?:of|in) (?:the |each |every |this |next )|\bevery {_NTH} {WEEKDAY}\b"
    rf"|(?:第[一二三四五1-5]个|最后一个?)的?{WEEKDAY_ZH}",
    re.IGNORECASE,
)
_DETERMINER = r"(?:the|my|our|his|her|their|your|that|a)"
_OF_CONTENT = re.compile(
    r"“[^“”]*”|\"[^\"]*\"|「[^「」]*」|《[^《》]*》"
    rf"|\b(?:today|tonight|tomorrow|yesterday|(?:next |last )?(?:week|month|year|{WEEKDAY}))['’]s\b"
    rf"|(?<!\bin )(?<!\bon )\b{_DETERMINER} (?:next |last )?"
    rf"(?:\d{{1,2}}(?::\d{{2}})? ?[ap]m|\d{{1,2}}:\d{{2}}|{WEEKDAY}|morning|afternoon|evening"
    r"|daily|weekly|monthly|weekend|noon|midnight)"
    r" (?!at\b|on\b|of\b|and\b|to\b|in\b|before\b|after\b)(?=[a-z])"
    rf"|(?<!every )\blast (?:week|month|year|night|{WEEKDAY})\b(?! (?:of|in) (?:the|each|every)\b)"
    rf"|昨天|昨晚|前天|(?<![早晚])上{{1,4}}个?{WEEK_ZH}[一二三四五六日天]?"
    r"|[早晚快慢多少好有差]一?点(?![钟半\d])|一点(?=[都也儿])"
    rf"|(?:(?:今天|明天|后天|[下本这]{{0,4}}个?{WEEK_ZH}[一二三四五六日天末]|[下本这]个?周|{COUNT}月{COUNT}[日号]|{COUNT}[日号])"
    rf"(?:上午|下午|早上|晚上|中午)?(?:{COUNT}点半?|\d{{1,2}}[:：]\d\d)?"
    rf"|(?:上午|下午|早上|晚上|中午)(?:{COUNT}点半?|\d{{1,2}}[:：]\d\d)?|{COUNT}点半?|\d{{1,2}}[:：]\d\d)"
    rf"的(?!上午|下午|早|晚|中午|凌晨|傍晚|闹钟|闹铃|提醒|{COUNT}点|\d)",
    re.IGNORECASE,
)
_FIRST_MARK = 0xE000  # private use: nobody writes these


@dataclass(frozen=True, slots=True)
class SpokenMoment:
    """`at` is ISO 8601 without an offset, maybe of a day that does not exist; "" where there is a
    `problem`. `rest` is the text without the words about time.

    missing: day or time is not said. several: more than one time, or one that something is only to
    be before or after of. often: a repetition that there is none of. halves: morning or evening.
    zone: by the clock of another place. lunar: by the lunar calendar.
    """

    at: str
    repeats: Repeats
    rest: str
    problem: MomentProblem = ""


def read_moment(text: str, now: datetime) -> SpokenMoment:
    """What `text` says about the time in its first 4,000 characters, as said at `now`. Without its
    zone hours are counted by the clock on the wall, also where that is changed meanwhile."""
    usual_text = with_month_ends(normalise_time_words(text[:_LONGEST]), now.date())
    plain, put_back = mark_quoted_times(usual_text)
    moment = _read_spoken(plain, now)
    rest = put_back(moment.rest) + text[_LONGEST:]
    return SpokenMoment(moment.at, moment.repeats, rest, moment.problem)


def _read_spoken(text: str, said_at: datetime) -> SpokenMoment:
    now = said_at.replace(tzinfo=None)
    if problem := _unreadable(text, said_at):
        return SpokenMoment("", "once", text, problem)
    text = without_zones(text)
    soon = next((match for one in _IN if (match := one.search(text))), None)
    rest = _without(text, soon) if soon else text
    every = None if soon else REPETITION.search(rest)
    repeats = read_repetition(every) if every else "once"
    rest = _without(rest, every) if every else rest
    if repeats == "weekdays":  # 周一到周五每天
        rest = re.sub("每天|每日", " ", rest)
    dates = list(named_days(rest, DATE_EXPRESSIONS, now.date()))
    clock = next(
        (one for one in TIME_PATTERN.finditer(rest) if not _is_within_day(one, dates)), None
    )
    if clock and _is_bound(rest, clock):
        return SpokenMoment("", repeats, rest, "several")
    period = PERIOD_PATTERN.search(_blank_match(rest, clock))
    rest = _without(rest, *(one for one in (clock, period) if one))
    day, rest, agree = _day(rest, now.date())
    if (
        not agree
        or TIME_PATTERN.search(rest)
        or any(named_days(rest, (*DAY_EXPRESSIONS, *DATE_EXPRESSIONS), now.date()))
    ):
        return SpokenMoment("", repeats, rest, "several")
    at_noon = not clock and period is not None and period[0] == "中午"
    if soon and not clock and not (at_noon and _minutes(soon) % _A_DAY == 0):
        unclear = bool(day or period)
        at = _after(said_at, soon)
        return SpokenMoment("" if unclear else _iso(at), "once", rest, "several" if unclear else "")
    if soon and (_minutes(soon) % _A_DAY or day):
        return SpokenMoment("", repeats, rest, "several")
    is_noon = bool(day or soon) and not clock and period is not None and period[0] == "中午"
    if not (clock or is_noon) or (not day and not soon and _VAGUE.search(rest)):
        return SpokenMoment("", repeats, rest, "missing")
    if repeats == "monthly":
        day = real_day(day)
    period_word = period[0] if period else period_of_repetition(every) if every else ""
    if soon:
        day = f"{now + timedelta(minutes=_minutes(soon)):%Y-%m-%d}"
    clock_time = read_time(clock, period_word.lower()) if clock else TimeOfDay(12, 0)
    return (
        _moment_at(clock_time, day, now, repeats, rest)
        if clock_time
        else SpokenMoment("", repeats, rest, "missing")
    )


def _unreadable(text: str, said_at: datetime) -> MomentProblem:
    """What is wrong with the time as a whole."""
    if UNKNOWN_REPETITION.search(text):
        return "often"
    if _NTH_WEEKDAY.search(text):
        return "often" if REPETITION.search(text) else "several"
    if names_other_zone(text, said_at):
        return "zone"
    if names_lunar_day(text):
        return "lunar"
    return "several" if _RELATIVE.search(_without_relative(text)) else ""


def _day(rest: str, today: date) -> tuple[str, str, bool]:
    """The day that is said, the text without it, and whether date and weekday agree."""
    date_match = next(named_days(rest, DATE_EXPRESSIONS, today), None)
    iso = next_date(date_match, today) if date_match else ""
    rest_of_text = _without(rest, date_match) if date_match else rest
    if date_match and not iso:
        return "", rest_of_text, False
    named_day = next(named_days(rest_of_text, DAY_EXPRESSIONS, today), None)
    if not named_day:
        return iso, rest_of_text, True
    if _is_bound(rest_of_text, named_day):
        return iso, rest_of_text, False
    rest_of_text, of_name = _without(rest_of_text, named_day), next_date(named_day, today)
    if not iso:
        return of_name, rest_of_text, True
    try:
        agree = date.fromisoformat(iso).weekday() == date.fromisoformat(of_name).weekday()
    except ValueError:
        agree = True  # the date does not exist, which is said later
    return iso, rest_of_text, agree


def _moment_at(
    clock: TimeOfDay, day: str, now: datetime, repeats: Repeats, rest: str
) -> SpokenMoment:
    today = now.replace(hour=clock.hour, minute=clock.minute, second=0, microsecond=0)
    is_once, is_today = repeats == "once", day in ("", f"{now:%Y-%m-%d}")
    if clock.is_midnight and day:
        return SpokenMoment("", repeats, rest, "several")
    if not clock.sure and clock.hour in (5, 6):
        if not (is_today and is_once) or today + timedelta(hours=12) <= now:
            return SpokenMoment("", repeats, rest, "halves")
        today += timedelta(hours=12)
    elif not clock.sure and clock.hour < 5:
        if is_today and is_once and now < today:
            return SpokenMoment("", repeats, rest, "halves")  # said at night
        today += timedelta(hours=12)
    elif not clock.sure and is_today and is_once and today <= now < today + timedelta(hours=12):
        return SpokenMoment("", repeats, rest, "halves")
    if not day:
        today += timedelta(days=today <= now and is_once)
        return SpokenMoment(_iso(today), repeats, rest)
    return SpokenMoment(f"{day}T{today:%H:%M}", repeats, rest)


def _minutes(soon: re.Match[str]) -> int:
    length = _MINUTES[read_unit(soon["unit"])]
    if soon["n"] == "半" or (soon["half"] and soon["half"] != "半"):
        return length // 2
    return (read_number(soon["n"] or "a") or 0) * length + (length // 2 if soon["half"] else 0)


def _after(said_at: datetime, soon: re.Match[str]) -> datetime:
    """A day later is the same time of another date; two hours later is two hours later."""
    span = timedelta(minutes=_minutes(soon))
    if said_at.tzinfo is None or _MINUTES[read_unit(soon["unit"])] >= _A_DAY:
        return said_at + span
    return (said_at.astimezone(UTC) + span).astimezone(said_at.tzinfo)


def _iso(at: datetime) -> str:
    """With its offset only where the clock shows that time for the second time on that day."""
    return at.isoformat(timespec="minutes") if at.tzinfo and at.fold else f"{at:%Y-%m-%dT%H:%M}"


def _span(one: re.Match[str] | Day) -> tuple[int, int]:
    return (one.start, one.end) if isinstance(one, Day) else one.span()


def _is_bound(text: str, one: re.Match[str] | Day) -> bool:
    """Whether it is only the beginning or the end of the time that is meant."""
    start, end = _span(one)
    return bool(_AROUND.match(text, end) or _BEFORE.search(text[:start]))


def _is_within_day(one: re.Match[str], days: Iterable[Day]) -> bool:
    return any(day.start <= one.start() < day.end for day in days)


def _without_relative(text: str) -> str:
    for one in _IN:
        text = one.sub(" ", text)
    return text


def _blank_match(text: str, match: re.Match[str] | None) -> str:
    """The text with digits in place of the match, so that all else stays where it is."""
    if match is None:
        return text
    return text[: match.start()] + "0" * (match.end() - match.start()) + text[match.end() :]


def _without(text: str, *parts: re.Match[str] | Day) -> str:
    """The text without these parts of it, which do not overlap."""
    for start, end in sorted(map(_span, parts), reverse=True):
        text = f"{text[:start]} {text[end:]}"
    return text


def read_repetition(match: re.Match[str]) -> Repeats:
    """What a match of `REPETITION` says."""
    zh = match["zh"]
    if match["weekdays"] or match["on"] or match["bare_zh"] or zh == "工作日":
        return "weekdays"
    if match["daily"] or (zh and zh[0] in "天日早晚"):
        return "daily"
    if match["monthly"] or zh == "月":
        return "monthly"
    words: dict[str, Repeats] = {"daily": "daily", "monthly": "monthly"}
    return words.get((match["ly"] or "").lower(), "weekly")


def period_of_repetition(match: re.Match[str]) -> str:
    """“every morning” says which half of the day it is."""
    return match["daily"] or match["zh"] or ""


def mark_quoted_times(text: str) -> tuple[str, Callable[[str], str]]:
    """The text with a mark for each time that is part of what is said (“the 3pm meeting”,
    “tomorrow's deck”, 周四的会), and what puts them back."""
    contents: list[str] = []

    def mark(match: re.Match[str]) -> str:
        contents.append(match[0])
        return chr(_FIRST_MARK + len(contents) - 1)

    def put_back(rest: str) -> str:
        for index, words in enumerate(contents):
            rest = rest.replace(chr(_FIRST_MARK + index), words)
        return rest

    return _OF_CONTENT.sub(mark, text), put_back
