"""How often something is to happen, as people say it in English and Chinese. Pure."""

from __future__ import annotations

import re

from memory.dates.words import COUNT, MONTH, WEEK_ZH, WEEKDAY, WEEKDAY_ZH
from memory.tables.timers import Repeats

REPETITION = re.compile(
    r"\b(?:every|each) (?P<weekdays>week ?day|working day)s?\b|\bon (?P<on>weekdays)\b"
    r"|\b(?:every|each) (?P<daily>day|morning|evening|night)\b"
    rf"|\b(?:every|each) (?P<weekly>week|(?={WEEKDAY}\b))|\b(?:every|each) (?P<monthly>month)\b"
    rf"|\b(?P<ly>daily|weekly|monthly)\b|\b(?:on )?(?P<plural>(?={WEEKDAY}s\b))"
    rf"|每个?(?P<zh>工作日|[天日]|早上?|晚上?|(?={WEEKDAY_ZH})|{WEEK_ZH}|月)",
    re.IGNORECASE,
)
# Repetitions that no timer has.
UNKNOWN = re.compile(
    r"\b(?:every|each) (?:other|second|third|\d+|two|three|four|few|half|hour|minute|year|quarter"
    rf"|weekend|{MONTH}\b)|\b(?:bi-?weekly|fortnightly|hourly|yearly|annually|quarterly)\b"
    r"|\b(?:once|twice|\w+ times) an? (?:day|week|month|year|hour)\b"
    rf"|每隔|每个?(?:{COUNT}|半|几)(?:个|天|周|小时|分钟|月|年|星期)"
    r"|每(?:个?小时|个?季|年|分钟|周末)|隔(?:天|日|周)"
    rf"|{WEEKDAY_ZH}(?:[、,，和跟及]?{WEEK_ZH}?[一二三四五六日天](?![点月号日个]))",
    re.IGNORECASE,
)


def read_repetition(match: re.Match[str]) -> Repeats:
    """What a match of `REPETITION` says."""
    zh = match["zh"]
    if match["weekdays"] or match["on"] or zh == "工作日":
        return "weekdays"
    if match["daily"] or (zh and zh[0] in "天日早晚"):
        return "daily"
    if match["monthly"] or zh == "月":
        return "monthly"
    words: dict[str, Repeats] = {"daily": "daily", "monthly": "monthly"}
    return words.get((match["ly"] or "").lower(), "weekly")


def period_of(match: re.Match[str]) -> str:
    """“every morning” says which half of the day it is."""
    return match["daily"] or match["zh"] or ""
