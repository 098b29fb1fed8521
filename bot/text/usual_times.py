"""Rewrites what people say about time in the few ways that `moments` reads: “half past two” as
2:30, 今晚12点 as 明天0点, 月底 as a date. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta

from memory.dates import COUNT, WEEKDAY_ZH, read_number
from memory.text import HAN

_HOURS = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_CLOCK_HOUR = rf"(\d{{1,2}}|{_HOURS})"
_TWELVE = r"(?:12|24|0|十二|二十四|零)[点时](?:钟|整)?"
_EACH_MONTH_END = re.compile(
    r"\b(?:(?:on|at|by) )?the (?:last day|end) of (?:each|every) month\b"
    r"|\b(?:each|every) month (?:on|at) (?:its|the) (?:last day|end)\b"
    r"|每个?月的?(?P<zh>最后一天|月?底|月末)",
    re.IGNORECASE,
)
_MONTH_END = re.compile(
    r"\b(?:(?:at|on|by) )?the (?:end|last day) of (?:the|this|(?P<next>next)) month\b"
    r"|(?<![一二三四五六七八九十\d每])(?:这个?|本|(?P<zh_next>下个?))?月(?:底|末|的?最后一天)",
    re.IGNORECASE,
)


def with_month_ends(text: str, today: date) -> str:
    """“the end of the month”, 月底 as the date of its last day; of every month as one of a month of
    31 days, from which it is counted."""

    def last_day(match: re.Match[str]) -> str:
        return f" {_month_end(today, 1 if match['next'] or match['zh_next'] else 0)} "

    def of_each(match: re.Match[str]) -> str:
        ends = (_month_end(today, -back) for back in range(2))
        anchor = next(end for end in ends if end.day == 31)
        return f"{'每月' if match['zh'] else ' every month'} {anchor} "

    return _MONTH_END.sub(last_day, _EACH_MONTH_END.sub(of_each, text))


def _month_end(today: date, months: int) -> date:
    month = today.month + months
    return date(today.year + month // 12, month % 12 + 1, 1) - timedelta(days=1)


def _minutes_past(match: re.Match[str]) -> str:
    minutes = {"half": 30, "quarter": 15}[match[1].lower()]
    return f"{_number_said(match[2])}:{minutes:02}"


def _quarter_to(match: re.Match[str]) -> str:
    hour = (_number_said(match[1]) - 2) % 12 + 1
    return f"{hour}:45"


def _and_a_half(match: re.Match[str]) -> str:
    return f"{int(_number_said(match[1]) * 60 + 30)} minutes"


def _number_said(digits: str) -> int:
    return read_number(digits) or 0


_USUAL_WORDS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), usual)
    for pattern, usual in (
        (rf"(?<=[{HAN}]) (?=\d)|(?<=\d) (?=[{HAN}])", ""),
        (r"\b(?:tmrw|tmr|tmw|tomorow|tommorow|2morrow)\b", "tomorrow"),
        (r"\btonite\b", "tonight"),
        (rf"\b(half|quarter) past {_CLOCK_HOUR}\b", _minutes_past),
        (rf"\b(?:a )?quarter (?:to|of) {_CLOCK_HOUR}\b", _quarter_to),
        (rf"\bat ({_HOURS})\b(?! (?:or|of|and))", lambda match: f"at {_number_said(match[1])}"),
        (r"\bat (\d{1,2}) thirty\b", r"at \1:30"),
        (rf"\b{_CLOCK_HOUR}(?:\.5 hours?| and a half hours?)\b", _and_a_half),
        (rf"\b(an?|{_HOURS}) hours? and a half\b", _and_a_half),
        (r"\baround (?=\d)", "at "),
        (
            r"\b(?:every |each |on |from )?mon(?:day)? ?(?:-|–|to|through|till) ?fri(?:day)?\b",
            "every weekday",
        ),
        (r"每?个?(?:周|星期|礼拜)一(?:到|至|~|-)(?:周|星期|礼拜)?五", "每个工作日"),
        (
            r"\b(?:on )?(?:every first of the|the first(?: day)? of (?:every|each)) month\b",
            "every month on the 1st",
        ),
        (rf"(?:今天?(?:晚上?|半夜|夜里|深夜|午夜)|今夜)的?{_TWELVE}", "明天0点"),
        (rf"明天?(?:晚上?|半夜|夜里|深夜|午夜)的?{_TWELVE}", "后天0点"),
        (r"(今天|明天|后天)的?(?:24|二十四)[点时]", r"\1 24点"),
        (r"今天 24点", "明天0点"),
        (r"明天 24点", "后天0点"),
        (r"\btonight at (?:12|twelve|midnight)\b(?!:| ?[ap]\.?m)", "tomorrow at 0:00"),
        (r"\bat (?:12|twelve|midnight) tonight\b", "tomorrow at 0:00"),
        (r"今[儿日]", "今天"),
        (r"明[儿日]", "明天"),
        (r"(?<=[今明])(?=[早晚])", "天"),
        (rf"({WEEKDAY_ZH})(?={COUNT}[点时])", r"\1 "),
        (r"的时候", " "),
    )
)


def normalise_time_words(text: str) -> str:
    """“half past two” as 2:30, “tmrw” as tomorrow, 周一到周五 as 每个工作日."""
    for pattern, usual in _USUAL_WORDS:
        text = pattern.sub(usual, text)
    return text
