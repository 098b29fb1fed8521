"""Days and numbers as people write them in English and Chinese. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta

_DIGITS = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_DAYS_EN = "monday tuesday wednesday thursday friday saturday sunday".split()
_DAYS_ZH = "一二三四五六日"
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
WORDS = {
    "an": 1, "a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20,
    "thirty": 30, "forty": 40, "ninety": 90,
}  # fmt: skip

N = r"(?:\d{1,4}|[零〇一二三四五六七八九十两]{1,3})"
WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_SHORT = r"(?:mon|tues?|wed|thur?s?|fri|sat|sun)"
MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
DATE = re.compile(
    r"(?P<iso>\d{4}[-/]\d{1,2}[-/]\d{1,2})"
    rf"|\b(?:on )?(?:the )?(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<m1>{MONTH})\b"
    rf"|\b(?:on )?(?P<m2>{MONTH}) (?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\b"
    r"|(?<![\d/])(?:\bon )?(?P<n1>\d{1,2})/(?P<n2>\d{1,2})(?![\d/])"
    r"|\bon the (?P<d3>\d{1,2})(?:st|nd|rd|th)\b"
    rf"|(?P<zm>{N})月(?P<zd>{N})[日号]?|(?P<zd2>{N})[日号](?![楼线门馆机桌院厅店厂仓车口])",
    re.IGNORECASE,
)
DAY = re.compile(
    r"\b(?P<after>the day after tomorrow)\b|\b(?P<named>today|tonight|tomorrow)\b"
    rf"|\b(?:on )?(?:(?P<nextweek>next )|(?P<this>this ))?(?P<weekday>{WEEKDAY})s?\b"
    rf"|\b(?:on |(?P<nextshort>next )|(?P<thisshort>this ))(?P<short>{_SHORT})\b"
    rf"|\b(?P<bare>{_SHORT})(?= (?:at\b|\d|morning|afternoon|evening)|$)"
    r"|(?P<zh>大后天|后天|明[天早晚]|今[天早晚])"
    r"|(?<!上)(?P<zhnext>下+)?个?(?P<zhthis>[这本])?个?(?:周|星期|礼拜)(?P<zhday>[一二三四五六日天])",
    re.IGNORECASE,
)


def number(said: str) -> int | None:
    """A number of up to two places in digits or Chinese; None for what is none."""
    if said.isdecimal():
        return int(said)
    tens, ten, ones = said.lstrip("零〇").partition("十")
    if ten:
        return _DIGITS.get(tens, 1) * 10 + (_DIGITS.get(ones, 0) if ones else 0)
    return _DIGITS.get(tens or "零")


def day_of(match: re.Match[str], now: datetime) -> str:
    """The ISO date of a match of `DATE` or `DAY`, said at `now`, maybe one that does not exist;
    "" where day and month cannot be told apart."""
    found = match.groupdict()
    return next((read(found, now) for group, read in _READERS if found.get(group) is not None), "")


def _named(day: dict[str, str], now: datetime) -> str:
    word = (day["named"] or day["after"] or day["zh"]).lower()
    ahead = 0 if word in ("today", "tonight") or word[0] == "今" else 1
    ahead = {"the day after tomorrow": 2, "后天": 2, "大后天": 3}.get(word, ahead)
    return f"{now + timedelta(days=ahead):%Y-%m-%d}"


def _weekday(day: dict[str, str], now: datetime) -> str:
    word = (day["weekday"] or day["short"] or day["bare"]).lower()[:3]
    wanted = next(n for n, name in enumerate(_DAYS_EN) if name.startswith(word))
    ahead = (wanted - now.weekday()) % 7
    if not (ahead or day["this"] or day["thisshort"]):
        ahead = 7
    if (day["nextweek"] or day["nextshort"]) and ahead <= 6 - now.weekday():
        ahead += 7  # “next Friday”, said on a Monday
    return f"{now + timedelta(days=ahead):%Y-%m-%d}"


def _weekday_zh(day: dict[str, str], now: datetime) -> str:
    wanted = _DAYS_ZH.index(day["zhday"].replace("天", "日"))
    weeks = len(day["zhnext"] or "")
    ahead = wanted - now.weekday() + 7 * weeks
    if ahead <= 0 and not weeks and not day["zhthis"]:
        ahead += 7
    return f"{now + timedelta(days=ahead):%Y-%m-%d}"


def _iso(day: dict[str, str], _: datetime) -> str:
    year, month, of_month = map(int, re.split("[-/]", day["iso"]))
    return f"{year:04}-{month:02}-{of_month:02}"


def _month_and_day(day: dict[str, str], now: datetime) -> str:
    if name := (day["m1"] or day["m2"]):
        month, of_month = _MONTHS.index(name.lower()[:3]) + 1, int(day["d1"] or day["d2"])
    else:
        month, of_month = number(day["zm"]) or 0, number(day["zd"]) or 0
    return _next_of_year(month, of_month, now)


def _slashed(day: dict[str, str], now: datetime) -> str:
    first, second = int(day["n1"]), int(day["n2"])
    if first != second and max(first, second) <= 12:
        return ""
    month, of_month = (second, first) if first > 12 else (first, second)
    return _next_of_year(month, of_month, now)


def _next_of_year(month: int, of_month: int, now: datetime) -> str:
    year = now.year + ((month, of_month) < (now.month, now.day))
    return f"{year:04}-{month:02}-{of_month:02}"


def _day_of_month(day: dict[str, str], now: datetime) -> str:
    wanted = (number(day["zd2"]) if day["zd2"] else int(day["d3"])) or 0
    year, month = divmod(now.year * 12 + now.month - 1 + (wanted < now.day), 12)
    return f"{year:04}-{month + 1:02}-{wanted:02}"


_READERS: tuple[tuple[str, Callable[[dict[str, str], datetime], str]], ...] = (
    ("after", _named),
    ("named", _named),
    ("zh", _named),
    ("weekday", _weekday),
    ("short", _weekday),
    ("bare", _weekday),
    ("zhday", _weekday_zh),
    ("iso", _iso),
    ("d1", _month_and_day),
    ("d2", _month_and_day),
    ("zm", _month_and_day),
    ("n1", _slashed),
    ("d3", _day_of_month),
    ("zd2", _day_of_month),
)
