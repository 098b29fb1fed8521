"""When something is to happen, as people say it in English and Chinese. Pure.

What is not said is taken as people at work mean it: “at 3” is in the afternoon, a time without a
day is its next one, “Thursday” the next Thursday. What may mean two things means none: every word
about time is accounted for, or has to be asked about.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal

from bot.text.dates.days import DATE, DAY, MONTH, WEEKDAY, WORDS, N, day_of, number
from bot.text.dates.time_normalisation import in_usual_words, without_content
from memory.kept.timers import Repeats

Problem = Literal["", "missing", "several", "often", "halves"]

_UNITS = {
    "min": 1, "m": 1, "分钟": 1, "hour": 60, "hr": 60, "h": 60, "小时": 60, "钟头": 60,
    "day": 1440, "d": 1440, "天": 1440, "week": 10080, "周": 10080, "星期": 10080, "礼拜": 10080,
}  # fmt: skip
_A_DAY = 1440
_COUNT = rf"(?P<half>half an? )?(?P<n>\d{{1,4}}|{'|'.join(WORDS)})? ?"
_UNIT = r"(?P<unit>min(?:ute)?s?|m|hours?|hrs?|h|days?|d|weeks?)\b"
_IN = (
    re.compile(rf"\bin {_COUNT}{_UNIT}(?: from (?:now|today))?", re.IGNORECASE),
    re.compile(rf"\b{_COUNT}{_UNIT} from (?:now|today)\b", re.IGNORECASE),
    re.compile(
        rf"(?P<past>再?过)?(?P<n>{N}|半)个?(?P<half>半)?(?P<unit>分钟|小时|钟头|天|周|星期|礼拜)"
        r"(?(past)(?:之?以?后)?|(?:之?以?后))"
    ),
)
_EVERY = re.compile(
    r"\b(?:every|each) (?P<weekdays>week ?day|working day)s?\b|\bon (?P<on>weekdays)\b"
    r"|\b(?:every|each) (?P<daily>day|morning|evening|night)\b"
    rf"|\b(?:every|each) (?P<weekly>week|(?={WEEKDAY}\b))|\b(?:every|each) (?P<monthly>month)\b"
    rf"|\b(?P<ly>daily|weekly|monthly)\b|\b(?:on )?(?P<plural>(?={WEEKDAY}s\b))"
    r"|每个?(?P<zh>工作日|[天日]|早上?|晚上?|(?=(?:周|星期|礼拜)[一二三四五六日天])|周|星期|礼拜|月)",
    re.IGNORECASE,
)
_NEVER_SO = re.compile(
    r"\b(?:every|each) (?:other|second|third|\d+|two|three|four|few|half|hour|minute|year|quarter"
    rf"|weekend|{MONTH}\b)|\b(?:bi-?weekly|fortnightly|hourly|yearly|annually|quarterly)\b"
    r"|\b(?:once|twice|\w+ times) an? (?:day|week|month|year|hour)\b"
    rf"|每隔|每个?(?:{N}|半|几)(?:个|天|周|小时|分钟|月|年|星期)|每(?:个?小时|个?季|年|分钟|周末)|隔(?:天|日|周)"
    r"|(?:周|星期|礼拜)[一二三四五六日天](?:[、,，和跟及]?(?:周|星期|礼拜)?[一二三四五六日天](?![点月号日个]))",
    re.IGNORECASE,
)
_PERIOD = re.compile(
    r"凌晨|清晨|早上|早晨|上午|中午|下午|傍晚|晚上|(?<=天)[早晚]"
    r"|(?:\bin the |\bthis |(?<=tomorrow )|(?<=day )|(?<=\d )|(?<=[ap]m )|(?<=every ))"
    r"(?P<en>morning|afternoon|evening|night)\b|\bat night\b|\btonight\b",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"(?:\bat |@ ?)?(?<!\d)(?P<h>\d{1,2})[:：](?P<m>\d{2})(?!\d)(?: ?(?P<ap>[ap])\.?m\b\.?)?"
    r"|(?:\bat )?\b(?P<h2>\d{1,2}) ?(?P<ap2>[ap])\.?m\b\.?"
    r"|\bat (?P<h3>\d{1,2})(?: o'?clock)?\b(?![/.]\d)|\b(?P<h4>\d{1,2}) o'?clock\b"
    r"|\b(?:at )?(?P<word>noon|midnight)\b"
    rf"|(?P<zh>{N})[点时](?:钟|整)?(?P<zm>半|[一三]刻|{N}分?)?",
    re.IGNORECASE,
)
_TO = r"[-–—~～至]|到(?=[\d零一二三四五六七八九十两])"
_AROUND = re.compile(rf"(?:之|以)?[前后](?!天)|(?:{_TO})", re.IGNORECASE)
_BEFORE = re.compile(
    rf"(?:\b(?:before|until|till|by|after|since|from|between) (?:the )?|{_TO})$", re.IGNORECASE
)
_RELATIVE = re.compile(
    r"\b(?:min(?:ute)?s?|hours?|hrs?|days?|weeks?|months?)"
    r" (?:before|prior|ahead|earlier|after|from)"
    rf"|早晚(?=各?(?:{N}点|\d))|提前|{N}个?半?(?:分钟|小时|钟头|天|周|星期)(?:之|以)?前",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"\b(?:next|this|the) (?:week|month|year|quarter|weekend)\b|\bweekend\b|\bend of\b"
    rf"|\bin {_COUNT}(?:months?|years?)\b"
    rf"|下+个?(?:周|星期|礼拜|月|季)|周末|[月年季]底|[月年]初|{N}个?[月年](?:之|以)?后"
    r"|元旦|春节|除夕|元宵|清明|端午|中秋|国庆|\b(?:christmas|new year|easter|thanksgiving)\b",
    re.IGNORECASE,
)
_NIGHT = ("下午", "傍晚", "晚上", "晚", "afternoon", "evening", "night", "tonight")
_MORNING = ("凌晨", "清晨", "早上", "早晨", "上午", "早", "morning")
_NOON = 12


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
    """What `text` says about the time, as said at `now`."""
    plain, put_back = without_content(in_usual_words(text))
    found = _read(plain, now.replace(tzinfo=None))
    return When(found.at, found.repeats, put_back(found.rest), found.problem)


def _read(text: str, now: datetime) -> When:
    if _NEVER_SO.search(text):
        return When("", "once", text, "often")
    if _RELATIVE.search(_without_in(text)):
        return When("", "once", text, "several")
    soon = next((match for one in _IN if (match := one.search(text))), None)
    rest = _without(text, soon) if soon else text
    every = None if soon else _EVERY.search(rest)
    repeats = _repeats(every)
    rest = _without(rest, every) if every else rest
    if repeats == "weekdays":  # 周一到周五每天
        rest = re.sub("每天|每日", " ", rest)
    dates = list(DATE.finditer(rest))
    clock = next((one for one in _TIME.finditer(rest) if not _within(one, dates)), None)
    if clock and (_AROUND.match(rest, clock.end()) or _BEFORE.search(rest[: clock.start()])):
        return When("", repeats, rest, "several")
    period = _PERIOD.search(_blank(rest, clock))
    rest = _without(rest, *(one for one in (clock, period) if one))
    day, rest, agree = _day(rest, now)
    if _TIME.search(rest) or DAY.search(rest) or DATE.search(rest) or not agree:
        return When("", repeats, rest, "several")
    if soon and not clock:
        unclear = bool(day or period)
        at = now + timedelta(minutes=_minutes(soon))
        return When("" if unclear else _iso(at), "once", rest, "several" if unclear else "")
    if soon and (_minutes(soon) % _A_DAY or day):
        return When("", repeats, rest, "several")
    if not clock or (not day and not soon and _VAGUE.search(rest)):
        return When("", repeats, rest, "missing")
    said = (period[0] if period else _half_of(every)).lower()
    if soon:
        day = f"{now + timedelta(minutes=_minutes(soon)):%Y-%m-%d}"
    return _at(clock, said, day, now, repeats, rest)


def _day(rest: str, now: datetime) -> tuple[str, str, bool]:
    """The day that is said, the text without it, and whether date and weekday agree."""
    date_said = DATE.search(rest)
    iso = day_of(date_said, now) if date_said else ""
    left = _without(rest, date_said) if date_said else rest
    if date_said and not iso:
        return "", left, False
    named = DAY.search(left)
    if not named:
        return iso, left, True
    if _AROUND.match(left, named.end()) or _BEFORE.search(left[: named.start()]):
        return iso, left, False
    if not iso:
        return day_of(named, now), _without(left, named), True
    try:
        agree = (
            date.fromisoformat(iso).weekday() == date.fromisoformat(day_of(named, now)).weekday()
        )
    except ValueError:
        agree = True  # the date does not exist, which is said later
    return iso, _without(left, named), agree


def _at(
    clock: re.Match[str], period: str, day: str, now: datetime, repeats: Repeats, rest: str
) -> When:
    read = _hour(clock, period)
    if read is None:
        return When("", repeats, rest, "missing")
    hour, minute, sure = read
    today = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    once, is_today = repeats == "once", day in ("", f"{now:%Y-%m-%d}")
    if clock["word"] and hour == 0 and day:
        return When("", repeats, rest, "several")  # midnight of which of two nights
    if not sure and hour in (5, 6):
        if not (is_today and once) or today + timedelta(hours=12) <= now:
            return When("", repeats, rest, "halves")
        today += timedelta(hours=12)
    elif not sure and hour < 5:
        if is_today and once and now < today:
            return When("", repeats, rest, "halves")  # said at night
        today += timedelta(hours=12)
    elif not sure and is_today and once and today <= now < today + timedelta(hours=12):
        return When("", repeats, rest, "halves")
    if not day:
        today += timedelta(days=today <= now and once)
        return When(_iso(today), repeats, rest)
    return When(f"{day}T{today:%H:%M}", repeats, rest)


def _hour(clock: re.Match[str], period: str) -> tuple[int, int, bool] | None:
    """Hour and minute, and whether it is sure which half of the day is meant."""
    if clock["word"]:
        return (12 if clock["word"].lower() == "noon" else 0), 0, True
    if clock["zh"]:
        written = clock["zh"]
        hour, minute = number(written), _minute(clock["zm"] or "")
    else:
        written = clock["h"] or clock["h2"] or clock["h3"] or clock["h4"]
        hour, minute = int(written), int(clock["m"] or 0)
    half = (clock["ap"] or clock["ap2"] or "").lower()
    if hour is None or minute is None or hour > 24 or minute > 59:
        return None
    if half == "p" or period.endswith(_NIGHT) or (period == "中午" and hour < 6):
        if hour == _NOON and not half and period.endswith(("晚上", "晚", "night")):
            return None  # 晚上12点 is the next day's
        return (hour + 12 if hour < _NOON else hour) % 24, minute, True
    if half == "a" or period.endswith(_MORNING):
        return hour % _NOON, minute, True
    exact = bool(clock["h"]) and (written.startswith("0") or hour >= 7)
    return hour % 24, minute, exact or not 0 < hour < _NOON


def _minutes(soon: re.Match[str]) -> int:
    said = soon["unit"].lower()
    unit = _UNITS.get(said) or _UNITS[next(u for u in _UNITS if len(u) > 1 and said.startswith(u))]
    if soon["n"] == "半" or (soon["half"] and soon["half"] != "半"):
        return unit // 2
    word = (soon["n"] or "a").lower()
    count = WORDS.get(word, number(word) or 0)
    return count * unit + (unit // 2 if soon["half"] else 0)


def _repeats(every: re.Match[str] | None) -> Repeats:
    if every is None:
        return "once"
    zh = every["zh"]
    if every["weekdays"] or every["on"] or zh == "工作日":
        return "weekdays"
    if every["daily"] or (zh and zh[0] in "天日早晚"):
        return "daily"
    if every["monthly"] or zh == "月":
        return "monthly"
    said: dict[str, Repeats] = {"daily": "daily", "monthly": "monthly"}
    return said.get((every["ly"] or "").lower(), "weekly")


def _half_of(every: re.Match[str] | None) -> str:
    """“every morning” says which half of the day it is."""
    return (every["daily"] or every["zh"] or "") if every else ""


def _minute(said: str) -> int | None:
    if said in ("半", "一刻", "三刻"):
        return {"半": 30, "一刻": 15, "三刻": 45}[said]
    return number(said.removesuffix("分")) if said else 0


def _iso(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M}"


def _within(one: re.Match[str], others: list[re.Match[str]]) -> bool:
    return any(other.start() <= one.start() < other.end() for other in others)


def _without_in(text: str) -> str:
    for one in _IN:
        text = one.sub(" ", text)
    return text


def _blank(text: str, match: re.Match[str] | None) -> str:
    """The text with digits in place of the match, so that all else stays where it is."""
    if match is None:
        return text
    return text[: match.start()] + "0" * (match.end() - match.start()) + text[match.end() :]


def _without(text: str, *matches: re.Match[str]) -> str:
    """The text without these parts of it, which do not overlap."""
    for start, end in sorted((one.span() for one in matches), reverse=True):
        text = f"{text[:start]} {text[end:]}"
    return text
