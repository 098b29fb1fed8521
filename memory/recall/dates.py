"""Which time a question speaks of: date expressions in Chinese and English. Pure.

An expression that fits several times (a date without a year, 5/4) gives several spans in order of
preference; the one that is meant is the first in which anything was said, which only the memory
knows. Weeks begin on Monday. What lies in the future is nobody's memory and gives nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo

_YEARS_BACK = 5
_DAY = timedelta(days=1)

Days = tuple[date, date]  # half open


@dataclass(frozen=True, slots=True)
class Span:
    """Half open, both ends aware."""

    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class DateRange:
    """Spans in order of preference, at least one. `fuzzy` for “lately”: a hint, not a date."""

    spans: tuple[Span, ...]
    fuzzy: bool = False


def date_range(question: str, now: datetime) -> DateRange | None:
    """The time `question` speaks of, as seen at `now` (aware) by someone in its zone."""
    if not _may_speak_of_a_time(question):
        return None
    today, zone = now.date(), now.tzinfo
    for rule in _RULES:
        for match in rule.pattern.finditer(question):
            spans = tuple(_span(days, zone) for days in _sensible(rule, match, today))
            if spans:
                return DateRange(spans, fuzzy=rule.fuzzy)
    return None


@dataclass(frozen=True, slots=True)
class _Rule:
    """`days` reads a match on `today`; it raises `ValueError` when that is no date."""

    pattern: re.Pattern[str]
    days: Callable[[re.Match[str], date], list[Days]]
    fuzzy: bool = False


def _sensible(rule: _Rule, match: re.Match[str], today: date) -> list[Days]:
    try:
        found = rule.days(match, today)
    except (ValueError, OverflowError):
        return []
    return [(since, until) for since, until in found if since <= today]


def _span(days: Days, zone: tzinfo | None) -> Span:
    since, until = (datetime.combine(day, time(), zone) for day in days)
    return Span(since, until)


# Whatever speaks of a time has one of these; most questions have none, and need no rule tried.
_SIGNS = frozenset("年月日号號天周星期礼拜昨今前晚夜刚近阵")
_STEMS = (
    "day week month year night morning afternoon evening recent lately"
    " jan feb mar apr may jun jul aug sep oct nov dec"
).split()
_DIGIT = re.compile(r"\d")


def _may_speak_of_a_time(question: str) -> bool:
    lower = question.lower()
    return (
        not _SIGNS.isdisjoint(lower)
        or _DIGIT.search(lower) is not None
        or any(stem in lower for stem in _STEMS)
        or ("just" in lower and "now" in lower)
    )


# Numbers, months and days as people write them

_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_WEEKDAYS = "mon tue wed thu fri sat sun".split()
_SMALL = "one two three four five six seven eight nine ten eleven twelve".split()

_N = r"(?:\d{1,2}|[一二三四五六七八九十两兩廿]{1,3})"
_YEAR = r"(?P<year>(?:\d{4}|[〇零一二三四五六七八九]{4})年|去年|今年|前年|大前年)\s*的?"
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_WEEKDAY = r"(?P<weekday>monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b"
_EN_YEAR = r"(?:,?\s*(?:of\s+)?(?P<year>(?:19|20)\d\d|(?:last|this)\s+year)\b)"
_EN_N = r"(?P<n>\d{1,3}|an?|" + "|".join(_SMALL) + r"|a\s+couple\s+of)"


def _number(text: str) -> int:
    """`4`, `四`, `十二`, `廿三`, `two`, `a couple of`; `ValueError` for what is none (`十二三`)."""
    text = text.strip().lower()
    if text.isdecimal():
        return int(text)
    if text in _SMALL:
        return _SMALL.index(text) + 1
    if text in ("a", "an"):
        return 1
    if text.startswith("a "):
        return 2
    tens, ten, ones = text.replace("廿", "二十").partition("十")
    if not ten:
        return int("".join(str(_DIGITS[c]) for c in text))
    if not {tens, ones} <= {"", *_DIGITS}:
        raise ValueError(text)
    return _DIGITS.get(tens, 1) * 10 + _DIGITS.get(ones, 0)


def _year(text: str | None, today: date) -> int | None:
    if not text:
        return None
    text = text.strip().lower()
    back = {"今年": 0, "去年": 1, "前年": 2, "大前年": 3, "this year": 0, "last year": 1}
    if (key := " ".join(text.split())) in back:
        return today.year - back[key]
    return _number(text.removesuffix("年"))


def _month_number(text: str) -> int:
    return _MONTHS.index(text[:3].lower()) + 1


# Spans of days


def _one(day: date) -> Days:
    return day, day + _DAY


def _month(year: int, month: int) -> Days:
    months = year * 12 + month
    return date(year, month, 1), date(months // 12, months % 12 + 1, 1)


def _months_back(today: date, months: int) -> Days:
    index = today.year * 12 + today.month - 1 - months
    return _month(index // 12, index % 12 + 1)


def _whole_year(year: int) -> Days:
    return date(year, 1, 1), date(year + 1, 1, 1)


def _weeks_back(today: date, weeks: int) -> Days:
    monday = today - timedelta(days=today.weekday() + 7 * weeks)
    return monday, monday + 7 * _DAY


def _dated(year: int | None, month: int, day: int, today: date) -> list[Days]:
    """The day in `year`, or in each of the latest years that have had it."""
    if year:
        return [_one(date(year, month, day))]
    days = [d for back in range(_YEARS_BACK) if (d := _day_or_none(today.year - back, month, day))]
    return [_one(d) for d in days if d <= today]


def _day_or_none(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _latest_months(year: int | None, month: int, today: date) -> list[Days]:
    if year:
        return [_month(year, month)]
    spans = [_month(today.year - back, month) for back in range(_YEARS_BACK)]
    return [span for span in spans if span[0] <= today]


def _latest_weekday(weekday: int, today: date, *, before_today: bool) -> list[Days]:
    back = (today.weekday() - weekday) % 7
    if back == 0 and before_today:
        back = 7
    return [_one(today - timedelta(days=back))]


# Readings of a match


def _ymd(m: re.Match[str], today: date) -> list[Days]:
    return _dated(int(m["year"]), int(m["month"]), int(m["day"]), today)


def _chinese_day(m: re.Match[str], today: date) -> list[Days]:
    month = _number(m["month"])
    year = _year(m["year"], today)
    first = _dated(year, month, _number(m["day"]), today)
    if not m["last"]:
        return first
    last = _dated(year, _number(m["last_month"] or m["month"]), _number(m["last"]), today)
    return [(a[0], b[1]) for a, b in zip(first, last, strict=False) if a[0] < b[1]]


def _chinese_month_day(m: re.Match[str], today: date) -> list[Days]:
    month = _months_back(today, m["which"].count("上"))[0]
    return [_one(month.replace(day=_number(m["day"])))]


def _day_of_latest_month(m: re.Match[str], today: date) -> list[Days]:
    firsts = [_months_back(today, back)[0] for back in range(12)]
    days = [_day_or_none(d.year, d.month, _number(m["day"])) for d in firsts]
    return [_one(d) for d in days if d and d <= today]


def _english_day(m: re.Match[str], today: date) -> list[Days]:
    year = _year(m["year"], today)
    return _dated(year, _month_number(m["month"]), int(m["day"]), today)


def _slashed(m: re.Match[str], today: date) -> list[Days]:
    a, b = int(m["a"]), int(m["b"])
    readings = [_readable(month, day, today) for month, day in dict.fromkeys([(a, b), (b, a)])]
    return [days for years in zip(*filter(None, readings), strict=False) for days in years]


def _readable(month: int, day: int, today: date) -> list[Days]:
    return _dated(None, month, day, today) if 1 <= month <= 12 and 1 <= day <= 31 else []


def _chinese_weekday(m: re.Match[str], today: date) -> list[Days]:
    day = m["day"]
    weeks = (m["which"] or "").count("上")
    if day == "末":
        monday = _weeks_back(today, weeks)[0]
        return [(monday + 5 * _DAY, monday + 7 * _DAY)]
    weekday = "一二三四五六日".index(day.replace("天", "日"))
    if m["which"]:
        return [_one(_weeks_back(today, weeks)[0] + weekday * _DAY)]
    return _latest_weekday(weekday, today, before_today=False)


def _english_weekday(m: re.Match[str], today: date) -> list[Days]:
    weekday = _WEEKDAYS.index(m["weekday"][:3].lower())
    return _latest_weekday(weekday, today, before_today=(m["which"] or "").lower() != "this")


def _weekend(m: re.Match[str], today: date) -> list[Days]:
    monday = _weeks_back(today, 0 if m["which"].lower() == "this" else 1)[0]
    return [(monday + 5 * _DAY, monday + 7 * _DAY)]


def _ago(m: re.Match[str], today: date) -> list[Days]:
    """`n` days ago is a day; longer ago is told less exactly, so the spans are wider."""
    n, unit = _number(m["n"]), m["unit"].lower()
    if unit in ("天", "日", "day", "days"):
        return [_one(today - timedelta(days=n))]
    if "月" in unit or unit.startswith("month"):
        return [_months_back(today, n)]
    if unit == "年" or unit.startswith("year"):
        return [_whole_year(today.year - n)]
    day = today - timedelta(weeks=n)
    return [(day - 3 * _DAY, day + 4 * _DAY)]


def _past(m: re.Match[str], today: date) -> list[Days]:
    """The last `n` days, weeks or months up to now."""
    n, unit = _number(m["n"]), m["unit"].lower()
    if unit in ("天", "日") or unit.startswith("day"):
        length = n
    elif "月" in unit or unit.startswith("month"):
        length = 31 * n
    else:
        length = 7 * n
    return [(today - timedelta(days=length), today + _DAY)]


def _days_back(back: int, length: int = 1) -> Callable[[re.Match[str], date], list[Days]]:
    return lambda _, today: [(today - back * _DAY, today + (length - back) * _DAY)]


def _count(char: str, reading: Callable[[date, int], Days]) -> Callable[..., list[Days]]:
    return lambda m, today: [reading(today, m["which"].count(char))]


def _back(reading: Callable[[date, int], Days], n: int) -> Callable[..., list[Days]]:
    return lambda _, today: [reading(today, n)]


def _rule(pattern: str, days: Callable[..., list[Days]], *, fuzzy: bool = False) -> _Rule:
    return _Rule(re.compile(pattern, re.IGNORECASE), days, fuzzy)


_PREPOSITION = r"(?:in|during|of|since|until|from|last|this|back\s+in|by|before|after)\s+"
_THAT_DAY = (
    r"(?=\s*(?:那天|这天|当天|那日|晚|早|上午|下午|中午|的时候|我|你|他|她|咱|说|聊|提到|问))"
)
_DAY_UNIT = r"(?P<unit>days?|weeks?|months?|years?)"
_CN_UNIT = r"(?P<unit>天|日|周|个?星期|个?礼拜|个月|年)"

# The first rule that reads a date wins: exact dates before relative ones, days before longer times.
_RULES = (
    _rule(
        r"(?<!\d)(?P<year>(?:19|20)\d\d)(?P<s>[-/.])(?P<month>\d{1,2})(?P=s)(?P<day>\d{1,2})(?!\d)",
        _ymd,
    ),
    _rule(
        rf"(?:{_YEAR}\s*)?(?<![\d第])(?P<month>{_N})\s*月\s*(?P<day>{_N})\s*[日号號]?"
        rf"(?:(?<=[日号號])|(?<=\d)(?=\s*(?:那天|这天|当天|[到至~-]|我|你)))"
        rf"(?:\s*[到至~—-]\s*(?:(?P<last_month>{_N})月)?(?P<last>{_N})[日号號])?",
        _chinese_day,
    ),
    _rule(rf"(?P<which>上上个?月|上个?月|这个月|本月)\s*(?P<day>{_N})[日号號]", _chinese_month_day),
    _rule(
        rf"\b{_MONTH}\s+(?P<day>\d{{1,2}})"
        rf"(?:st|nd|rd|th)?\b(?!\s*(?:of\s+(?:us|the|them)|people|%|:\d)){_EN_YEAR}?",
        _english_day,
    ),
    _rule(
        rf"(?<![\d.])\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}(?!\s+\d{{1,2}}\b){_EN_YEAR}?",
        _english_day,
    ),
    _rule(
        r"(?:\b(?:on|since|from|until|by|before|after)\s+|[在从于]\s*)(?P<a>\d{1,2})/(?P<b>\d{1,2})(?![\d/%])"
        r"(?!\s*(?:of\b|的人))",
        _slashed,
    ),
    _rule(
        rf"(?<![\d/])(?P<a>\d{{1,2}})/(?P<b>\d{{1,2}})(?![\d/%])(?:{_THAT_DAY}|(?=\s*[日号]))",
        _slashed,
    ),
    _rule(rf"(?<![月\d第编账])(?P<day>{_N})[号號]{_THAT_DAY}", _day_of_latest_month),
    _rule(r"大前天", _days_back(3)),
    _rule(
        r"(?<![天几])前天|前晚|(?:the\s+)?day\s+before\s+yesterday|night\s+before\s+last",
        _days_back(2),
    ),
    _rule(r"昨晚|昨夜|last\s+night", _days_back(1)),
    _rule(r"昨[天日儿早]|昨儿|\byesterday\b", _days_back(1)),
    _rule(rf"(?P<n>{_N}|\d{{3}})\s*{_CN_UNIT}(?:之前|以前|前)", _ago),
    _rule(rf"(?:最近|近|过去|这)(?:的)?(?P<n>{_N}|\d{{3}})\s*{_CN_UNIT}", _past),
    _rule(rf"\b{_EN_N}\s+{_DAY_UNIT}\s+(?:ago|back|earlier)\b", _ago),
    _rule(rf"\b(?:last|past|previous)\s+{_EN_N}\s+{_DAY_UNIT}\b", _past),
    _rule(
        r"(?<!每)(?P<which>上+个?|这个?|本)?(?:周|星期|礼拜)(?P<day>[一二三四五六日天末])(?![次个些天年月起周])",
        _chinese_weekday,
    ),
    _rule(r"(?P<which>上+)个?(?:周|星期|礼拜)", _count("上", _weeks_back)),
    _rule(r"(?P<which>这|本)个?(?:周|星期|礼拜)", _count("上", _weeks_back)),
    _rule(
        rf"(?<!every )(?<!next )(?:\b(?P<which>last|this|on|past)\s+)?\b{_WEEKDAY}",
        _english_weekday,
    ),
    _rule(r"\b(?P<which>last|this|over\s+the|past)\s+weekend\b", _weekend),
    _rule(r"\bweek\s+before\s+last\b", _back(_weeks_back, 2)),
    _rule(r"\blast\s+week\b", _back(_weeks_back, 1)),
    _rule(r"\bthis\s+week\b", _back(_weeks_back, 0)),
    _rule(
        rf"(?:{_YEAR}\s*)?(?<![\d第])(?P<month>{_N})月(?:份|初|底|中旬|上旬|下旬)?(?![\d日号號球票饼光亮])",
        lambda m, today: _latest_months(_year(m["year"], today), _number(m["month"]), today),
    ),
    _rule(
        rf"\b{_PREPOSITION}(?:early\s+|late\s+|mid-?)?{_MONTH}(?!\s+\d{{1,2}}\b){_EN_YEAR}?",
        lambda m, today: _latest_months(_year(m["year"], today), _month_number(m["month"]), today),
    ),
    _rule(
        rf"\b{_MONTH}{_EN_YEAR}",
        lambda m, today: _latest_months(_year(m["year"], today), _month_number(m["month"]), today),
    ),
    _rule(r"(?P<which>上+)个?月", _count("上", _months_back)),
    _rule(r"(?P<which>这个|本)月", _count("上", _months_back)),
    _rule(r"\bmonth\s+before\s+last\b", _back(_months_back, 2)),
    _rule(r"\blast\s+month\b", _back(_months_back, 1)),
    _rule(r"\bthis\s+month\b", _back(_months_back, 0)),
    _rule(
        r"(?P<year>(?<!\d)(?:19|20)\d\d年|去年|今年|大前年|前年)(?!级|代)",
        lambda m, today: [_whole_year(_year(m["year"], today) or today.year)],
    ),
    _rule(
        r"\b(?:in|during|back\s+in|since)\s+(?P<year>(?:19|20)\d\d)\b|\b(?P<word>(?:last|this)\s+year)\b",
        lambda m, today: [_whole_year(_year(m["year"] or m["word"], today) or today.year)],
    ),
    _rule(
        r"今[天日晚早儿]|\btoday\b|\btonight\b|\bthis\s+(?:morning|afternoon|evening)\b",
        _days_back(0),
    ),
    _rule(r"刚才|刚刚|\bjust\s+now\b|\bearlier\s+today\b", _days_back(0), fuzzy=True),
    _rule(
        r"最近|近来|近期|前几天|几天前|这几天|前些天|前阵子|前段时间|这阵子"
        r"|\brecent(?:ly)?\b|\blately\b|\bthe\s+other\s+day\b|\ba\s+few\s+days\s+ago\b|\bthese\s+days\b",
        _days_back(14, 15),
        fuzzy=True,
    ),
)
