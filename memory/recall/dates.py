"""Which time a question speaks of: date expressions in Chinese and English. Pure.

An expression that fits several times (a date without a year, 5/4) gives several spans in order of
preference; the one that is meant is the first in which anything was said, which only the memory
knows. Weeks begin on Monday. What lies in the future is nobody's memory and gives nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta, tzinfo
from functools import lru_cache

from memory.dates import (
    DATE_EXPRESSIONS,
    ENGLISH_NUMBER,
    HAN_NUMBER,
    MONTH_NAME,
    MONTH_STEMS,
    NUMBER,
    PAST_DAY_EXPRESSIONS,
    TODAY_EXPRESSION,
    WEEK_ZH,
    WEEKDAY_EXPRESSIONS,
    YEAR_EN,
    YEAR_ZH,
    YEARS_BACK,
    DayExpression,
    past_dates,
    read_month,
    read_number,
    read_unit,
    read_year,
)

_DAY = timedelta(days=1)

DayRange = tuple[date, date]  # half open
_LONGEST = 4_000  # characters of a question in which its time is looked for


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """Half open, both ends aware."""

    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class DateRange:
    """Spans in order of preference, at least one. `fuzzy` for “lately”: a hint, not a date.
    `question[start:end]` names it."""

    spans: tuple[TimeSpan, ...]
    fuzzy: bool = False
    start: int = 0
    end: int = 0


def date_range(question: str, now: datetime) -> DateRange | None:
    """The time `question` speaks of near its beginning, as seen at `now` (aware) by someone in its
    zone."""
    return _read_date_range(question[:_LONGEST], now.date(), now.tzinfo)


@lru_cache(maxsize=64)  # the steps of a turn ask about one question
def _read_date_range(question: str, today: date, zone: tzinfo | None) -> DateRange | None:
    if not _may_speak_of_a_time(question):
        return None
    for rule in _RULES:
        for match in rule.pattern.finditer(question):
            spans = tuple(_span(days, zone) for days in _sensible(rule, match, today))
            if spans:
                return DateRange(spans, rule.fuzzy, *match.span())
    return None


@dataclass(frozen=True, slots=True)
class _Rule:
    """`days` reads a match on `today`; it raises `ValueError` when that is no date."""

    pattern: re.Pattern[str]
    days: Callable[[re.Match[str], date], list[DayRange]]
    fuzzy: bool = False


def _sensible(rule: _Rule, match: re.Match[str], today: date) -> list[DayRange]:
    try:
        days = rule.days(match, today)
    except (ValueError, OverflowError):
        return []
    return [(start, until) for start, until in days if start <= today]


def _span(days: DayRange, zone: tzinfo | None) -> TimeSpan:
    start, until = (datetime.combine(day, time(), zone) for day in days)
    return TimeSpan(start, until)


# Whatever speaks of a time has one of these; most questions have none, and need no rule tried.
_SIGNS = frozenset("年月日号號天周星期礼拜昨今前晚夜刚近阵季")
_STEMS = (
    *"day week month quarter year night morning afternoon evening recent lately".split(),
    *MONTH_STEMS,
)
_DIGIT = re.compile(r"\d")


def _may_speak_of_a_time(question: str) -> bool:
    lower = question.lower()
    return (
        not _SIGNS.isdisjoint(lower)
        or _DIGIT.search(lower) is not None
        or any(stem in lower for stem in _STEMS)
        or ("just" in lower and "now" in lower)
    )


# Spans of days


def _month(year: int, month: int) -> DayRange:
    months = year * 12 + month
    return date(year, month, 1), date(months // 12, months % 12 + 1, 1)


def _months_back(today: date, months: int) -> DayRange:
    index = today.year * 12 + today.month - 1 - months
    return _month(index // 12, index % 12 + 1)


def _whole_year(year: int) -> DayRange:
    return date(year, 1, 1), date(year + 1, 1, 1)


def _weeks_back(today: date, weeks: int) -> DayRange:
    monday = today - timedelta(days=today.weekday() + 7 * weeks)
    return monday, monday + 7 * _DAY


def _weekend_back(today: date, weeks: int) -> DayRange:
    monday, after = _weeks_back(today, weeks)
    return monday + 5 * _DAY, after


# Readings of a match


def _days_of(one: DayExpression) -> Callable[[re.Match[str], date], list[DayRange]]:
    """The day of an expression, or all from that to the one it says, where it is `certain`."""

    def read(match: re.Match[str], today: date) -> list[DayRange]:
        day = one.read(match, today)
        if not day.certain:
            return []
        firsts = past_dates(day, today)
        if not (to := _TO_DAY.match(match.string, match.end())) or day.month is None:
            return [(first, first + _DAY) for first in firsts]
        to_month = read_month(to["month"]) if to["month"] else day.month
        last = replace(day, month=to_month, day=read_number(to["day"]) or 0)
        pairs = zip(firsts, past_dates(last, today), strict=False)
        return [(first, last + _DAY) for first, last in pairs if first <= last]

    return read


def _some_month(match: re.Match[str], today: date) -> list[DayRange]:
    """A month of the year that is named, or of each of the latest years."""
    years = [today.year - back for back in range(YEARS_BACK)]
    if match["year"]:
        years = [read_year(match["year"], today.year)]
    return [_month(one, read_month(match["month"])) for one in years]


def _some_quarter(match: re.Match[str], today: date) -> list[DayRange]:
    """A quarter of the year that is named, or of each of the latest years."""
    quarter_text = match["quarter"]
    quarter = _ORDINALS.index(quarter_text.lower()) % 4 if quarter_text.lower() in _ORDINALS else -1
    if quarter < 0:
        quarter = (read_number(quarter_text) or 0) - 1
    year_text = match.groupdict().get("year") or match.groupdict().get("before")
    years = (
        [read_year(year_text, today.year)]
        if year_text
        else range(today.year, today.year - YEARS_BACK, -1)
    )
    return [_quarter(one, quarter) for one in years] if 0 <= quarter < 4 else []


def _quarter(of_year: int, quarter: int) -> DayRange:
    first, _ = _month(of_year, 3 * quarter + 1)
    _, after = _month(of_year, 3 * quarter + 3)
    return first, after


def _quarters_back(today: date, quarters: int) -> DayRange:
    index = today.year * 4 + (today.month - 1) // 3 - quarters
    return _quarter(index // 4, index % 4)


def _ago(match: re.Match[str], today: date) -> list[DayRange]:
    """`n` days ago is a day; longer ago is told less exactly, so the spans are wider."""
    n, of = read_number(match["n"]), read_unit(match["unit"])
    if not n:
        return []
    if of == "month":
        return [_months_back(today, n)]
    if of == "year":
        return [_whole_year(today.year - n)]
    day = today - n * _DAY * (1 if of == "day" else 7)
    return [(day, day + _DAY) if of == "day" else (day - 3 * _DAY, day + 4 * _DAY)]


def _past(match: re.Match[str], today: date) -> list[DayRange]:
    """The last `n` days, weeks or months up to now."""
    n, length = read_number(match["n"]), {"day": 1, "month": 31}.get(read_unit(match["unit"]), 7)
    return [(today - n * length * _DAY, today + _DAY)] if n else []


def _this_year(match: re.Match[str], today: date) -> list[DayRange]:
    return [_whole_year(read_year(match["year"], today.year))]


def _days_back(back: int, length: int = 1) -> Callable[[re.Match[str], date], list[DayRange]]:
    return lambda _, today: [(today - back * _DAY, today + (length - back) * _DAY)]


def _count(reading: Callable[[date, int], DayRange]) -> Callable[..., list[DayRange]]:
    """As many weeks or months back as `which` says 上."""
    return lambda match, today: [reading(today, (match["which"] or "").count("上"))]


def _back(reading: Callable[[date, int], DayRange], n: int) -> Callable[..., list[DayRange]]:
    return lambda _, today: [reading(today, n)]


def _rule(pattern: str, days: Callable[..., list[DayRange]], *, fuzzy: bool = False) -> _Rule:
    return _Rule(re.compile(pattern, re.IGNORECASE), days, fuzzy)


def _days_named(*expressions: DayExpression) -> list[_Rule]:
    return [_Rule(one.pattern, _days_of(one)) for one in expressions]


_TO_DAY = re.compile(
    rf"(?<=[日号號])\s*[到至~—-]\s*(?:(?P<month>{NUMBER})月)?(?P<day>{NUMBER})[日号號]"
)
_ORDINALS = "first second third fourth 1st 2nd 3rd 4th".split()
_PREPOSITION = r"(?:in|during|of|since|until|from|last|this|back\s+in|by|before|after)\s+"
_HAN_COUNT = rf"(?P<n>(?<!\d)\d{{1,3}}|{HAN_NUMBER})"
_COUNT = rf"(?P<n>\d{{1,3}}|{ENGLISH_NUMBER})"
_DAY_UNIT = r"(?P<unit>days?|weeks?|months?|years?)"
_CN_UNIT = r"(?P<unit>天|日|周|个?星期|个?礼拜|个月|年)"

# The first rule that reads a date wins: exact dates before relative ones, days before longer times.
_RULES = (
    *_days_named(*DATE_EXPRESSIONS, *PAST_DAY_EXPRESSIONS),
    _rule(rf"{_HAN_COUNT}\s*{_CN_UNIT}(?:之前|以前|前)", _ago),
    _rule(rf"(?:最近|近|过去|这)(?:的)?{_HAN_COUNT}\s*{_CN_UNIT}", _past),
    _rule(rf"\b{_COUNT}\s+{_DAY_UNIT}\s+(?:ago|back|earlier)\b", _ago),
    _rule(rf"\b(?:last|past|previous)\s+{_COUNT}\s+{_DAY_UNIT}\b", _past),
    *_days_named(*WEEKDAY_EXPRESSIONS),
    _rule(
        rf"(?<!每)(?P<which>上{{1,4}}个?|这个?|本)?{WEEK_ZH}末(?![次个些天年月起周])",
        _count(_weekend_back),
    ),
    _rule(rf"(?P<which>上{{1,4}}|这|本)个?{WEEK_ZH}", _count(_weeks_back)),
    _rule(r"\b(?:last|over\s+the|past)\s+weekend\b", _back(_weekend_back, 1)),
    _rule(r"\bthis\s+weekend\b", _back(_weekend_back, 0)),
    _rule(r"\bweek\s+before\s+last\b", _back(_weeks_back, 2)),
    _rule(r"\blast\s+week\b", _back(_weeks_back, 1)),
    _rule(r"\bthis\s+week\b", _back(_weeks_back, 0)),
    _rule(rf"\bq(?P<quarter>[1-4])\b{YEAR_EN}", _some_quarter),
    _rule(rf"(?:{YEAR_ZH}\s*)?第?(?P<quarter>[1-4一二三四])(?:(?<=第.)个)?\s?季度", _some_quarter),
    _rule(
        rf"(?:{YEAR_ZH}\s*|\b(?P<before>(?:19|20)\d\d)\s?)?(?<![a-z])q(?P<quarter>[1-4])(?![a-z\d])",
        _some_quarter,
    ),
    _rule(rf"\b(?P<quarter>{'|'.join(_ORDINALS)})\s+quarter\b{YEAR_EN}?", _some_quarter),
    _rule(r"(?P<which>上{1,4}个?|这个?|本)季度", _count(_quarters_back)),
    _rule(r"\blast\s+quarter\b", _back(_quarters_back, 1)),
    _rule(r"\bthis\s+quarter\b", _back(_quarters_back, 0)),
    _rule(
        rf"(?:{YEAR_ZH}\s*)?(?<![\d第])(?P<month>{NUMBER})\s?月(?:份|初|底|中旬|上旬|下旬)?(?![\d日号號球票饼光亮])",
        _some_month,
    ),
    _rule(
        rf"\b{_PREPOSITION}(?:early\s+|late\s+|mid-?)?{MONTH_NAME}(?!\s+\d{{1,2}}\b){YEAR_EN}?",
        _some_month,
    ),
    _rule(rf"\b{MONTH_NAME}{YEAR_EN}", _some_month),
    _rule(r"(?P<which>上{1,4}个?|这个|本)月", _count(_months_back)),
    _rule(r"\bmonth\s+before\s+last\b", _back(_months_back, 2)),
    _rule(r"\blast\s+month\b", _back(_months_back, 1)),
    _rule(r"\bthis\s+month\b", _back(_months_back, 0)),
    _rule(r"(?P<year>(?<!\d)(?:19|20)\d\d\s?年|去年|今年|大前年|前年)(?!级|代)", _this_year),
    _rule(r"\b(?:in|during|since)\s+(?P<year>(?:19|20)\d\d)\b", _this_year),
    _rule(r"\b(?P<year>(?:last|this)\s+year)\b", _this_year),
    *_days_named(TODAY_EXPRESSION),
    _rule(r"刚才|刚刚|\bjust\s+now\b|\bearlier\s+today\b", _days_back(0), fuzzy=True),
    _rule(
        r"最近|近来|近期|前几天|几天前|这几天|前些天|前阵子|前段时间|这阵子"
        r"|\brecent(?:ly)?\b|\blately\b|\bthe\s+other\s+day\b|\ba\s+few\s+days\s+ago\b|\bthese\s+days\b",
        _days_back(14, 15),
        fuzzy=True,
    ),
)
