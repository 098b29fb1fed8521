"""Words about time in the form that the rules know, and those that belong to what is said. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable

from memory.dates.words import COUNT, WEEK_ZH, WEEKDAY, number
from memory.text import HAN

_HOURS = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_CLOCK_HOUR = rf"(\d{{1,2}}|{_HOURS})"


def _past(match: re.Match[str]) -> str:
    minutes = {"half": 30, "quarter": 15}[match[1].lower()]
    return f"{_value(match[2])}:{minutes:02}"


def _to(match: re.Match[str]) -> str:
    hour = (_value(match[1]) - 2) % 12 + 1
    return f"{hour}:45"


def _and_a_half(match: re.Match[str]) -> str:
    return f"{int(_value(match[1]) * 60 + 30)} minutes"


def _value(digits: str) -> int:
    return number(digits) or 0


_OTHERWISE: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), usual)
    for pattern, usual in (
        (rf"(?<=[{HAN}]) (?=\d)|(?<=\d) (?=[{HAN}])", ""),
        (r"\b(?:tmrw|tmr|tmw|tomorow|tommorow|2morrow)\b", "tomorrow"),
        (r"\btonite\b", "tonight"),
        (rf"\b(half|quarter) past {_CLOCK_HOUR}\b", _past),
        (rf"\b(?:a )?quarter (?:to|of) {_CLOCK_HOUR}\b", _to),
        (rf"\bat ({_HOURS})\b(?! (?:or|of|and))", lambda match: f"at {_value(match[1])}"),
        (r"\bat (\d{1,2}) thirty\b", r"at \1:30"),
        (rf"\b{_CLOCK_HOUR}(?:\.5 hours?| and a half hours?)\b", _and_a_half),
        (rf"\b(an?|{_HOURS}) hours? and a half\b", _and_a_half),
        (r"\baround (?=\d)", "at "),
        (
            r"\b(?:every |each |on |from )?mon(?:day)? ?(?:-|–|to|through|till) ?fri(?:day)?\b",
            "every weekday",
        ),
        (r"每?个?(?:周|星期|礼拜)一(?:到|至|~|-)(?:周|星期|礼拜)?五", "每个工作日"),
        (r"今[儿日]", "今天"),
        (r"明[儿日]", "明天"),
        (r"(?<=[今明])(?=[早晚])", "天"),
        (r"的时候", " "),
    )
)

_OWNED = r"(?:the|my|our|his|her|their|your|that|a)"
_OF_CONTENT = re.compile(
    r"“[^“”]*”|\"[^\"]*\"|「[^「」]*」|《[^《》]*》"
    rf"|\b(?:today|tonight|tomorrow|yesterday|(?:next |last )?(?:week|month|year|{WEEKDAY}))['’]s\b"
    rf"|(?<!\bin )(?<!\bon )\b{_OWNED} (?:next |last )?"
    rf"(?:\d{{1,2}}(?::\d{{2}})? ?[ap]m|\d{{1,2}}:\d{{2}}|{WEEKDAY}|morning|afternoon|evening"
    r"|daily|weekly|monthly|weekend|noon|midnight)"
    r" (?!at\b|on\b|of\b|and\b|to\b|in\b|before\b|after\b)(?=[a-z])"
    rf"|\blast (?:week|month|year|night|{WEEKDAY})\b"
    rf"|昨天|昨晚|前天|(?<![早晚])上{{1,4}}个?{WEEK_ZH}[一二三四五六日天]?"
    r"|[早晚快慢多少好有差]一?点(?![钟半\d])|一点(?=[都也儿])"
    rf"|(?:(?:今天|明天|后天|[下本这]{{0,4}}个?{WEEK_ZH}[一二三四五六日天末]|[下本这]个?周|{COUNT}月{COUNT}[日号]|{COUNT}[日号])"
    rf"(?:上午|下午|早上|晚上|中午)?(?:{COUNT}点半?|\d{{1,2}}[:：]\d\d)?"
    rf"|(?:上午|下午|早上|晚上|中午)(?:{COUNT}点半?|\d{{1,2}}[:：]\d\d)?|{COUNT}点半?|\d{{1,2}}[:：]\d\d)"
    rf"的(?!上午|下午|早|晚|中午|凌晨|傍晚|闹钟|闹铃|提醒|{COUNT}点|\d)",
    re.IGNORECASE,
)
_FIRST_MARK = 0xE000  # private use: nobody writes these


def in_usual_words(text: str) -> str:
    """“half past two” as 2:30, “tmrw” as tomorrow, 周一到周五 as 每个工作日."""
    for pattern, usual in _OTHERWISE:
        text = pattern.sub(usual, text)
    return text


def without_content(text: str) -> tuple[str, Callable[[str], str]]:
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
