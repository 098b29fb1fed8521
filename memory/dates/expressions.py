"""The ways in which people name a day in English and Chinese. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from memory.dates.days import Day
from memory.dates.words import (
    COUNT,
    MONTH,
    SHORT_WEEKDAY,
    WEEK_ZH,
    WEEKDAY,
    N,
    month,
    number,
    weekday,
    year,
)

_FIRST_YEAR = 1900  # of a year in figures that is certainly one


@dataclass(frozen=True, slots=True)
class Expression:
    """One way to name a day; `read` makes the day of a match, as said on a date."""

    pattern: re.Pattern[str]
    read: Callable[[re.Match[str], date], Day]


def named_days(text: str, expressions: Sequence[Expression], today: date) -> Iterator[Day]:
    """The days named in `text`, from left to right, as said on `today`; of two that overlap the
    first."""
    ahead = {one: one.pattern.search(text) for one in expressions}
    while matches := {one: match for one, match in ahead.items() if match}:
        reader = min(matches, key=lambda one: matches[one].start())
        yield reader.read(matches[reader], today)
        at = matches[reader].end()
        ahead = {
            one: match if match.start() >= at else one.pattern.search(text, at)
            for one, match in matches.items()
        }


# Words that make a date of what else may be a number or a part of a word.
_THAT_DAY = re.compile(
    r"\s*(?:那天|这天|当天|那日|晚|早|上午|下午|中午|的时候|我|你|他|她|咱|说|聊|提到|问)"
)
_OF_THE_DAY = re.compile(r"\s*(?:那天|这天|当天|[到至~-]|我|你)")
_LEADS_TO_DATE = re.compile(r"(?:\b(?:on|since|from|until|by|before|after)|[在从于])\s*$")
_LONGEST_LEAD = 9
_GOES_ON = frozenset("次个些天年月起周")  # 周三次, 上周一起: no weekday


def _dated(match: re.Match[str], today: date) -> Day:
    """A month in figures or by name, a day, and maybe a year."""
    year_text = match["year"]
    of_year = year(year_text, today.year) if year_text else None
    numbers = (of_year, month(match["month"]), number(match["day"]) or 0)
    return Day(*match.span(), *numbers, certain=_is_certain(match, of_year))


def _is_certain(match: re.Match[str], of_year: int | None) -> bool:
    last = match[0][-1]
    if "月" not in match[0]:
        return of_year is None or _FIRST_YEAR <= of_year < _FIRST_YEAR + 200
    bare = last.isdecimal() and _OF_THE_DAY.match(match.string, match.end())
    return last in "日号號" or bool(bare)


def _of_month(match: re.Match[str], _: date) -> Day:
    """A day of last, this or next month."""
    which = match["which"].lower()
    months = which.count("下") - which.count("上") + (which == "next") - (which == "last")
    return Day(*match.span(), day=number(match["day"]) or 0, months=months)


def _of_some_month(match: re.Match[str], _: date) -> Day:
    certain = match[0][-1] in "号號" and bool(_THAT_DAY.match(match.string, match.end()))
    return Day(*match.span(), day=number(match["day"]) or 0, certain=certain)


def _slashed(match: re.Match[str], _: date) -> Day:
    first, second = int(match["a"]), int(match["b"])
    either_way = first != second and max(first, second) <= 12
    in_order = (second, first) if first > 12 else (first, second)
    text, (start, end) = match.string, match.span()
    lead = _LEADS_TO_DATE.search(text[max(0, start - _LONGEST_LEAD) : match.start("a")].lower())
    certain = lead or text[end:].lstrip()[:1] in ("日", "号") or _THAT_DAY.match(text, end)
    return Day(start, end, None, *in_order, either_way=either_way, certain=bool(certain))


def _ahead(days: int) -> Callable[[re.Match[str], date], Day]:
    return lambda match, _: Day(*match.span(), ahead=days)


def _weekday_en(match: re.Match[str], _: date) -> Day:
    which = (match["which"] or "").lower()
    return Day(
        *match.span(),
        weekday=weekday(match["weekday"]),
        weeks=1 if which == "next" else None,
        may_be_today=which == "this",
        certain=not match[0].lower().endswith("s"),
    )


def _weekday_zh(match: re.Match[str], _: date) -> Day:
    which = match["which"]
    return Day(
        *match.span(),
        weekday=weekday(match["weekday"]),
        weeks=which.count("下") - which.count("上") if which else None,
        may_be_today=None,
        certain=match["weekday"] in "日天" or match.string[match.end() :][:1] not in _GOES_ON,
    )


def _expression(pattern: str, read: Callable[[re.Match[str], date], Day]) -> Expression:
    return Expression(re.compile(pattern, re.IGNORECASE), read)


YEAR_ZH = (
    r"(?P<year>(?:(?<!\d)\d{4}\s?|[〇零一二三四五六七八九]{4})年|大?前年|去年|今年|明年|后年)\s*的?"
)
YEAR_EN = r"(?:,?\s*(?:of\s+)?(?P<year>(?:19|20)\d\d|(?:last|this|next)\s+year)\b)"
MONTH_NAME = rf"(?P<month>{MONTH})\b(?:\.(?=,?\s*\d))?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"

DATES = (
    _expression(
        r"(?<!\d)(?P<year>\d{4})(?P<s>[-/.])(?P<month>\d{1,2})(?P=s)(?P<day>\d{1,2})(?!\d)",
        _dated,
    ),
    _expression(
        rf"(?:{YEAR_ZH}\s*)?(?<![\d第])(?P<month>{N})\s*月\s*(?P<day>{COUNT})(?:\s*[日号號])?",
        _dated,
    ),
    _expression(
        rf"(?P<which>上{{1,3}}个?|下{{1,3}}个?|这个?|本)月的?\s*(?P<day>{N})[日号號]", _of_month
    ),
    _expression(
        rf"\b(?:on )?{MONTH_NAME}\s+{_DAY}\b(?!\s*(?:of\s+(?:us|the|them)|people|%|:\d)){YEAR_EN}?",
        _dated,
    ),
    _expression(
        rf"\b(?:on )?(?:the )?(?<![\d.]){_DAY}(?:\s+of)?\s+{MONTH_NAME}"
        rf"(?!\s+\d{{1,2}}\b(?!:|\s?[ap]\.?m)){YEAR_EN}?",
        _dated,
    ),
    _expression(
        r"(?:\bon )?(?<![\d/])(?P<a>\d{1,2})/(?P<b>\d{1,2})(?![\d/%])(?!\s*(?:of\b|的人))", _slashed
    ),
    _expression(
        rf"(?<![月\d第编账])(?P<day>{COUNT})[日号號](?![楼线门馆机桌院厅店厂仓车口])",
        _of_some_month,
    ),
    _expression(rf"\b(?:on )?the {_DAY} of (?P<which>last|this|next) month\b", _of_month),
    _expression(r"\bon the (?P<day>\d{1,2})(?:st|nd|rd|th)\b", _of_some_month),
)
PAST_DAYS = (
    _expression("大前天", _ahead(-3)),
    _expression(
        r"(?<![天几])前天|前晚|(?:the\s+)?day\s+before\s+yesterday|night\s+before\s+last",
        _ahead(-2),
    ),
    _expression(r"昨晚|昨夜|last\s+night", _ahead(-1)),
    _expression(r"昨[天日儿早]|\byesterday\b", _ahead(-1)),
)
TODAY = _expression(
    r"今[天日晚早儿]|\btoday\b|\btonight\b|\bthis\s+(?:morning|afternoon|evening)\b", _ahead(0)
)
COMING_DAYS = (
    _expression(r"\b(?:the )?day after tomorrow\b|(?<!大)后天", _ahead(2)),
    _expression(r"大后天", _ahead(3)),
    _expression(r"\btomorrow\b|明[天早晚]", _ahead(1)),
)
WEEKDAYS = (
    _expression(
        r"(?<!每)(?<!每个)(?P<which>(?<![早晚])上{1,3}个?|(?<!一)下{1,3}个?|这个?|本个?)?"
        rf"{WEEK_ZH}(?P<weekday>[一二三四五六日天])",
        _weekday_zh,
    ),
    _expression(
        rf"(?<!every )(?:\b(?P<which>last|past|this|next|on)\s+)?\b(?P<weekday>{WEEKDAY})s?\b",
        _weekday_en,
    ),
)
SHORT_WEEKDAYS = _expression(
    rf"\b(?:(?P<which>on|this|next) )?(?P<weekday>{SHORT_WEEKDAY})\b"
    r"(?(which)|(?= (?:at\b|\d|morning|afternoon|evening)|$))",
    _weekday_en,
)
DAYS = (TODAY, *COMING_DAYS, *WEEKDAYS, SHORT_WEEKDAYS)
