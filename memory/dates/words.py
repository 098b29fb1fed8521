"""Numbers, months, weekdays and units of time as people write them in English and Chinese. Pure."""

from __future__ import annotations

import re
from typing import Literal

Unit = Literal["minute", "hour", "day", "week", "month", "year"]

MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
WEEKDAYS = "mon tue wed thu fri sat sun".split()
WEEKDAYS_ZH = "一二三四五六日"
_DIGITS = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
ENGLISH = {
    "a couple of": 2, "an": 1, "a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5,
    "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12,
    "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "ninety": 90,
}  # fmt: skip
_UNITS: dict[str, Unit] = {
    "分": "minute", "小时": "hour", "钟头": "hour", "天": "day", "日": "day", "周": "week",
    "星期": "week", "礼拜": "week", "月": "month", "年": "year",
    "mo": "month", "m": "minute", "h": "hour", "d": "day", "w": "week", "y": "year",
}  # fmt: skip

# Patterns. A number of a month or day, and one that counts.
HAN_NUMBER = r"[零〇一二三四五六七八九十两兩廿]{1,3}"
N = rf"(?:\d{{1,2}}|{HAN_NUMBER})"
COUNT = rf"(?:\d{{1,4}}|{HAN_NUMBER})"
ENGLISH_NUMBER = rf"(?:{'|'.join(ENGLISH)})"
MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
SHORT_WEEKDAY = r"(?:mon|tues?|wed|thur?s?|fri|sat|sun)"
WEEK_ZH = "(?:周|星期|礼拜)"
WEEKDAY_ZH = f"{WEEK_ZH}[一二三四五六日天]"


def number(digits: str) -> int | None:
    """`4`, `四`, `十二`, `廿三`, `two`; None for what is none (`十二三`)."""
    text = re.sub(r"\s+", " ", digits.strip().lower())
    if text.isdecimal():
        return int(text)
    if text in ENGLISH:
        return ENGLISH[text]
    tens, ten, ones = text.lstrip("零〇").replace("廿", "二十").partition("十")
    if not ten:
        return _DIGITS.get(tens or text[:1])
    if not {tens, ones} <= {"", *_DIGITS}:
        return None
    return _DIGITS.get(tens, 1) * 10 + _DIGITS.get(ones, 0)


def month(name: str) -> int:
    """12 for “December”, “Dec”, `12` or `十二`; 0 for what is none."""
    if name[:3].lower() in MONTHS:
        return MONTHS.index(name[:3].lower()) + 1
    return number(name) or 0


def weekday(name: str) -> int:
    """0 for “Monday”, “mon” or the 一 of 周一."""
    if name in "天日":
        return 6
    return WEEKDAYS_ZH.index(name) if name in WEEKDAYS_ZH else WEEKDAYS.index(name[:3].lower())


def year(digits: str, this_year: int) -> int:
    """`2023年`, `二〇二三年`, `去年`, “last year”."""
    text = re.sub(r"\s+", " ", digits.strip().lower())
    if text in _YEARS:
        return this_year + _YEARS[text]
    return int("".join(str(_DIGITS.get(c, c)) for c in text.removesuffix("年").strip()))


_YEARS = {
    "大前年": -3, "前年": -2, "去年": -1, "今年": 0, "明年": 1, "后年": 2,
    "last year": -1, "this year": 0, "next year": 1,
}  # fmt: skip


def unit(word: str) -> Unit:
    """“mins”, `个月`, “h” as the unit that they name."""
    text = word.lower().removeprefix("个")
    return next(unit for stem, unit in _UNITS.items() if text.startswith(stem))
