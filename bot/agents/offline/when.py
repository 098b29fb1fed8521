"""When something is to happen, as people say it in English and Chinese. Pure.

What is not said is taken as people at work mean it: “at 3” is in the afternoon, a time without a
day is its next one, “Thursday” the next Thursday.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from memory.kept.timers import Repeats
from memory.text import HAN

_DIGITS = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_DAYS_EN = "monday tuesday wednesday thursday friday saturday sunday".split()
_DAYS_ZH = "一二三四五六日"
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_UNITS = {
    "minute": 1, "min": 1, "分钟": 1, "hour": 60, "hr": 60, "小时": 60, "钟头": 60,
    "day": 1440, "天": 1440, "week": 10080, "周": 10080, "星期": 10080, "礼拜": 10080,
}  # fmt: skip

_N = r"(?:\d{1,4}|[零一二三四五六七八九十两]{1,3})"
_WEEKDAY_EN = r"(?:mon|tues?|wednes|thurs?|fri|satur|sun)(?:day)?|(?:wed|thu|sat)\b"
_MONTH_EN = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
_IN = re.compile(
    r"\bin (?P<half>half an? )?(?P<n>\d{1,4}|an?|one|two|three|five|ten)? ?"
    r"(?P<unit>minute|min|hour|hr|day|week)s?\b"
    rf"|(?:再?过)?(?P<zn>{_N}|半)个?(?P<zhalf>半)?(?P<zunit>分钟|小时|钟头|天|周|星期|礼拜)(?:之?以?后)",
    re.IGNORECASE,
)
_EVERY = re.compile(
    rf"\b(?:every|each) (?P<en>week ?day|working day|day|morning|week|month|(?:{_WEEKDAY_EN}))s?\b"
    r"|\b(?P<ly>daily|weekly|monthly|on weekdays)\b"
    r"|每个?(?P<zh>工作日|天|日|早|晚|周末?|星期|礼拜|月)",
    re.IGNORECASE,
)
_DAY = re.compile(
    r"\b(?P<after>the day after tomorrow)\b|\b(?P<named>today|tonight|tomorrow)\b"
    rf"|\b(?:on |this |(?P<nextweek>next ))?(?P<weekday>{_WEEKDAY_EN})\b"
    r"|(?P<iso>\d{4}-\d{1,2}-\d{1,2})"
    rf"|\b(?:on )?(?:the )?(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<m1>{_MONTH_EN})\b"
    rf"|\b(?:on )?(?P<m2>{_MONTH_EN}) (?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\b"
    r"|\bon the (?P<d3>\d{1,2})(?:st|nd|rd|th)\b"
    r"|(?P<zh>大后天|后天|明[天早晚]|今[天早晚])"
    r"|(?P<zhnext>下+)?个?(?:这|本)?(?:周|星期|礼拜)(?P<zhday>[一二三四五六日天])"
    rf"|(?P<zm>{_N})月(?P<zd>{_N})[日号]?|(?P<zd2>{_N})[日号]",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"(?:\bat )?(?P<h>\d{1,2})[:：](?P<m>\d{2})(?: ?(?P<ap>[ap])\.?m\b\.?)?"
    r"|(?:\bat )?(?P<h2>\d{1,2}) ?(?P<ap2>[ap])\.?m\b\.?|\bat (?P<h3>\d{1,2})(?: o'?clock)?\b"
    r"|\b(?:at )?(?P<word>noon|midnight)\b"
    rf"|(?P<zh>{_N})[点时](?:钟)?(?P<zm>半|[一三]刻|{_N}分?)?",
    re.IGNORECASE,
)
_PERIOD = re.compile(
    r"凌晨|早上|早晨|上午|中午|下午|傍晚|晚上|\bin the (morning|afternoon|evening)\b"
)
_SPACED = re.compile(rf"(?<=[{HAN}]) (?=\d)|(?<=\d) (?=[{HAN}])")
_NOON, _FIRST_LIKELY = 12, 7


@dataclass(frozen=True, slots=True)
class When:
    """`at` is ISO 8601 without an offset, maybe of a day that does not exist; "" where day or
    time is missing. `rest` is the text without the words about time."""

    at: str
    repeats: Repeats
    rest: str


def when(text: str, now: datetime) -> When:
    """What `text` says about the time, as said at `now`."""
    text = _SPACED.sub("", text)
    if soon := _IN.search(text):
        at = now.replace(tzinfo=None) + timedelta(minutes=_minutes(soon))
        return When(f"{at:%Y-%m-%dT%H:%M}", "once", _without(text, soon))
    every = _EVERY.search(text)
    rest = _without(text, every, keep=_kept_of(every)) if every else text
    repeats = _repeats(every)
    period = _PERIOD.search(rest)
    rest = _without(rest, period) if period else rest
    clock = _TIME.search(rest)
    day = _DAY.search(_without(rest, clock) if clock else rest)
    said = period[0] if period else day[0] if day and day[0] in ("tonight", "今晚", "明晚") else ""
    if clock:
        rest = _without(rest, clock)
    if day:
        rest = _without(rest, day)
    if not clock or not (hour := _hour(clock, said)):
        return When("", repeats, rest)
    return When(_at(day, *hour, now, repeats), repeats, rest)


def _minutes(soon: re.Match[str]) -> int:
    unit = _UNITS[(soon["unit"] or soon["zunit"]).lower()]
    if soon["half"] or soon["zn"] == "半":
        return unit // 2
    words = {"one": 1, "two": 2, "three": 3, "five": 5, "ten": 10, "a": 1, "an": 1}
    count = _number(soon["zn"]) if soon["zn"] else words.get((soon["n"] or "a").lower())
    whole = count if count is not None else int(soon["n"])
    return whole * unit + (unit // 2 if soon["zhalf"] else 0)


def _kept_of(every: re.Match[str] | None) -> str:
    """“every Monday” leaves the Monday, 每周一 the 周, 每月1号 nothing."""
    if every is None:
        return ""
    said = (every["en"] or "").lower()
    if said and said not in (
        "weekday",
        "week day",
        "working day",
        "day",
        "morning",
        "week",
        "month",
    ):
        return said
    return every["zh"] if every["zh"] in ("周", "星期", "礼拜") else ""


def _repeats(every: re.Match[str] | None) -> Repeats:
    if every is None:
        return "once"
    said = (every["en"] or every["ly"] or every["zh"]).lower()
    if said in ("weekday", "week day", "working day", "on weekdays", "工作日"):
        return "weekdays"
    if said in ("day", "morning", "daily", "天", "日", "早", "晚"):
        return "daily"
    return "monthly" if said in ("month", "monthly", "月") else "weekly"


def _hour(clock: re.Match[str], period: str) -> tuple[int, int] | None:
    if clock["word"]:
        return (12, 0) if clock["word"].lower() == "noon" else (0, 0)
    if clock["zh"]:
        hour, minute = _number(clock["zh"]), _minute(clock["zm"] or "")
    else:
        hour, minute = int(clock["h"] or clock["h2"] or clock["h3"]), int(clock["m"] or 0)
    half = (clock["ap"] or clock["ap2"] or "").lower()
    if hour is None or hour > 24 or minute > 59:
        return None
    if (
        half == "p"
        or period in ("下午", "傍晚", "晚上", "tonight", "今晚", "明晚")
        or (period.endswith(("afternoon", "evening")) or (period == "中午" and hour < 6))
    ):
        return (hour + 12 if hour < _NOON else hour) % 24, minute
    if half == "a" or period in ("凌晨", "早上", "早晨", "上午") or period.endswith("morning"):
        return hour % _NOON, minute
    guessed = not clock["h"] and hour < _FIRST_LIKELY and hour > 0  # “at 3”; 3:00 is as written
    return (hour + 12 if guessed else hour) % 24, minute


def _at(day: re.Match[str] | None, hour: int, minute: int, now: datetime, repeats: Repeats) -> str:
    clock = f"{hour:02}:{minute:02}"
    if day is None:
        today = now.replace(tzinfo=None, hour=hour, minute=minute, second=0, microsecond=0)
        later = today <= now.replace(tzinfo=None) and repeats == "once"
        return f"{today + timedelta(days=later):%Y-%m-%d}T{clock}"
    for group, read in _READERS:
        if day[group]:
            return f"{read(day, now)}T{clock}"
    return ""


def _named(day: re.Match[str], now: datetime) -> str:
    word = (day["named"] or day["after"] or day["zh"]).lower()
    ahead = 0 if word in ("today", "tonight") or word[0] == "今" else 1
    ahead = {"the day after tomorrow": 2, "后天": 2, "大后天": 3}.get(word, ahead)
    return f"{now + timedelta(days=ahead):%Y-%m-%d}"


def _weekday(day: re.Match[str], now: datetime) -> str:
    word = day["weekday"].lower()[:3]
    wanted = next(n for n, name in enumerate(_DAYS_EN) if name.startswith(word))
    ahead = (wanted - now.weekday()) % 7 or 7
    if day["nextweek"] and ahead <= 6 - now.weekday():
        ahead += 7  # “next Friday”, said on a Monday
    return f"{now + timedelta(days=ahead):%Y-%m-%d}"


def _weekday_zh(day: re.Match[str], now: datetime) -> str:
    wanted = _DAYS_ZH.index(day["zhday"].replace("天", "日"))
    weeks = len(day["zhnext"] or "")
    ahead = wanted - now.weekday() + 7 * weeks
    return f"{now + timedelta(days=ahead if weeks or ahead > 0 else ahead + 7):%Y-%m-%d}"


def _date(day: re.Match[str], now: datetime) -> str:
    if day["iso"]:
        year, month, number = map(int, day["iso"].split("-"))
        return f"{year:04}-{month:02}-{number:02}"
    if name := (day["m1"] or day["m2"]):
        month, number = _MONTHS.index(name.lower()[:3]) + 1, int(day["d1"] or day["d2"])
    elif day["zm"]:
        month, number = _number(day["zm"]) or 0, _number(day["zd"]) or 0
    else:
        return _day_of_month(_number(day["zd2"]) if day["zd2"] else int(day["d3"]), now)
    year = now.year + ((month, number) < (now.month, now.day))
    return f"{year:04}-{month:02}-{number:02}"


def _day_of_month(number: int | None, now: datetime) -> str:
    year, month = divmod(now.year * 12 + now.month - 1 + ((number or 0) < now.day), 12)
    return f"{year:04}-{month + 1:02}-{number or 0:02}"


_READERS: tuple[tuple[str, Callable[[re.Match[str], datetime], str]], ...] = (
    ("after", _named),
    ("named", _named),
    ("zh", _named),
    ("weekday", _weekday),
    ("zhday", _weekday_zh),
    ("iso", _date),
    ("d1", _date),
    ("d2", _date),
    ("d3", _date),
    ("zm", _date),
    ("zd2", _date),
)


def _minute(said: str) -> int:
    if said in ("半", "一刻", "三刻"):
        return {"半": 30, "一刻": 15, "三刻": 45}[said]
    return _number(said.removesuffix("分")) or 0


def _number(said: str) -> int | None:
    """A number of up to two places in digits or Chinese; None for what is none."""
    if said.isdecimal():
        return int(said)
    tens, ten, ones = said.partition("十")
    if ten:
        return _DIGITS.get(tens, 1) * 10 + (_DIGITS.get(ones, 0) if ones else 0)
    return _DIGITS.get(said)


def _without(text: str, match: re.Match[str], keep: str = "") -> str:
    before, after = text[: match.start()], text[match.end() :]
    return f"{before} {keep}{after}" if keep else f"{before} {after}"
