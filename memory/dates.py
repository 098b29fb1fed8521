"""Reads days, numbers and units of time as people write them in English and Chinese. Pure.

A question looks back and a reminder looks ahead: “Friday” is the latest of `past_dates` to the
one and the `next_date` to the other. Weeks begin on Monday."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

Unit = Literal["minute", "hour", "day", "week", "month", "year"]
MONTH_STEMS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
WEEKDAY_STEMS = "mon tue wed thu fri sat sun".split()
WEEKDAY_CHARACTERS = "一二三四五六日"
_DIGITS = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
ENGLISH_NUMBERS = {
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
NUMBER = rf"(?:\d{{1,2}}|{HAN_NUMBER})"
COUNT = rf"(?:\d{{1,4}}|{HAN_NUMBER})"
ENGLISH_NUMBER = rf"(?:{'|'.join(ENGLISH_NUMBERS)})"
MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
SHORT_WEEKDAY = r"(?:mon|tues?|wed|thur?s?|fri|sat|sun)"
WEEK_ZH = "(?:周|星期|礼拜)"
WEEKDAY_ZH = f"{WEEK_ZH}[一二三四五六日天]"
_YEARS = {
    "大前年": -3, "前年": -2, "去年": -1, "今年": 0, "明年": 1, "后年": 2,
    "last year": -1, "this year": 0, "next year": 1,
}  # fmt: skip

YEARS_BACK = 5

_FIRST_YEAR = 1900  # of a year in figures that is certainly one

# Words that make a date of what else may be a number or a part of a word.
_THAT_DAY = re.compile(
    r"\s*(?:那天|这天|当天|那日|晚|早|上午|下午|中午|的时候|我|你|他|她|咱|说|聊|提到|问)"
)
_OF_THE_DAY = re.compile(r"\s*(?:那天|这天|当天|[到至~-]|我|你)")
_LEADS_TO_DATE = re.compile(r"(?:\b(?:on|since|from|until|by|before|after)|[在从于])\s*$")
_LONGEST_LEAD = 9
_GOES_ON = frozenset("次个些天年月起周")  # 周三次, 上周一起: no weekday
YEAR_ZH = (
    r"(?P<year>(?:(?<!\d)\d{4}\s?|[〇零一二三四五六七八九]{4})年|大?前年|去年|今年|明年|后年)\s*的?"
)
YEAR_EN = r"(?:,?\s*(?:of\s+)?(?P<year>(?:19|20)\d\d|(?:last|this|next)\s+year)\b)"
MONTH_NAME = rf"(?P<month>{MONTH})\b(?:\.(?=,?\s*\d))?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"


@dataclass(frozen=True, slots=True)
class Day:
    """A day as it is named in `text[start:end]`; None is what was not said.

    `month` and `day` may be of no date there is. `months`, `weeks` and `ahead` (days) count from
    today's. `either_way`: month and day may be the other way round. `may_be_today`: whether
    a weekday may be today itself, None: only when looking back. `certain`: the words can hardly
    mean anything but a day.
    """

    start: int
    end: int
    year: int | None = None
    month: int | None = None
    day: int = 0
    months: int | None = None
    weekday: int | None = None
    weeks: int | None = None
    ahead: int | None = None
    either_way: bool = False
    may_be_today: bool | None = False
    certain: bool = True


@dataclass(frozen=True, slots=True)
class DayExpression:
    """One way to name a day; `read` makes the day of a match, as said on a date."""

    pattern: re.Pattern[str]
    read: Callable[[re.Match[str], date], Day]


def _days_ahead(days: int) -> Callable[[re.Match[str], date], Day]:
    return lambda match, _: Day(*match.span(), ahead=days)


def _expression(pattern: str, read: Callable[[re.Match[str], date], Day]) -> DayExpression:
    return DayExpression(re.compile(pattern, re.IGNORECASE), read)


TODAY_EXPRESSION = _expression(
    r"今[天日晚早儿]|\btoday\b|\btonight\b|\bthis\s+(?:morning|afternoon|evening)\b", _days_ahead(0)
)
COMING_DAY_EXPRESSIONS = (
    _expression(r"\b(?:the )?day after tomorrow\b|(?<!大)后天", _days_ahead(2)),
    _expression(r"大后天", _days_ahead(3)),
    _expression(r"\btomorrow\b|明[天早晚]", _days_ahead(1)),
)


def read_weekday(name: str) -> int:
    """0 for “Monday”, “mon” or the 一 of 周一."""
    if name in "天日":
        return 6
    return (
        WEEKDAY_CHARACTERS.index(name)
        if name in WEEKDAY_CHARACTERS
        else WEEKDAY_STEMS.index(name[:3].lower())
    )


def _weekday_en(match: re.Match[str], _: date) -> Day:
    which = (match["which"] or "").lower()
    return Day(
        *match.span(),
        weekday=read_weekday(match["weekday"]),
        weeks=1 if which == "next" else None,
        may_be_today=which == "this",
        certain=not match[0].lower().endswith("s"),
    )


def _weekday_zh(match: re.Match[str], _: date) -> Day:
    which = match["which"]
    return Day(
        *match.span(),
        weekday=read_weekday(match["weekday"]),
        weeks=which.count("下") - which.count("上") if which else None,
        may_be_today=None,
        certain=match["weekday"] in "日天" or match.string[match.end() :][:1] not in _GOES_ON,
    )


WEEKDAY_EXPRESSIONS = (
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
SHORT_WEEKDAY_EXPRESSION = _expression(
    rf"\b(?:(?P<which>on|this|next) )?(?P<weekday>{SHORT_WEEKDAY})\b"
    r"(?(which)|(?= (?:at\b|\d|morning|afternoon|evening)|$))",
    _weekday_en,
)
DAY_EXPRESSIONS = (
    TODAY_EXPRESSION,
    *COMING_DAY_EXPRESSIONS,
    *WEEKDAY_EXPRESSIONS,
    SHORT_WEEKDAY_EXPRESSION,
)


def read_number(digits: str) -> int | None:
    """`4`, `四`, `十二`, `廿三`, `two`; None for what is none (`十二三`)."""
    text = re.sub(r"\s+", " ", digits.strip().lower())
    if text.isdecimal():
        return int(text)
    if text in ENGLISH_NUMBERS:
        return ENGLISH_NUMBERS[text]
    tens, ten, ones = text.lstrip("零〇").replace("廿", "二十").partition("十")
    if not ten:
        return _DIGITS.get(tens or text[:1])
    if not {tens, ones} <= {"", *_DIGITS}:
        return None
    return _DIGITS.get(tens, 1) * 10 + _DIGITS.get(ones, 0)


def read_month(name: str) -> int:
    """12 for “December”, “Dec”, `12` or `十二`; 0 for what is none."""
    if name[:3].lower() in MONTH_STEMS:
        return MONTH_STEMS.index(name[:3].lower()) + 1
    return read_number(name) or 0


def read_year(digits: str, this_year: int) -> int:
    """`2023年`, `二〇二三年`, `去年`, “last year”."""
    text = re.sub(r"\s+", " ", digits.strip().lower())
    if text in _YEARS:
        return this_year + _YEARS[text]
    return int("".join(str(_DIGITS.get(c, c)) for c in text.removesuffix("年").strip()))


def read_unit(word: str) -> Unit:
    """“mins”, `个月`, “h” as the unit that they name."""
    text = word.lower().removeprefix("个")
    return next(unit for stem, unit in _UNITS.items() if text.startswith(stem))


def next_date(day: Day, today: date) -> str:
    """The ISO date on which it comes next, maybe one that does not exist; "" where day and month
    cannot be told apart."""
    if day.either_way:
        return ""
    if day.ahead is not None:
        return f"{today + timedelta(days=day.ahead)}"
    if day.weekday is not None:
        return f"{_next_weekday(day, day.weekday, today)}"
    if day.month is None:
        months = (day.day < today.day) if day.months is None else day.months
        first = _month_of(today, months)
        return f"{first:%Y-%m}-{day.day:02}"
    of_year = day.year or today.year + ((day.month, day.day) < (today.month, today.day))
    return f"{of_year:04}-{day.month:02}-{day.day:02}"


def past_dates(day: Day, today: date) -> list[date]:
    """The dates that may be meant by who looks back, best first; none in the future where a year
    or a week was not named."""
    if day.ahead is not None:
        return [today + timedelta(days=day.ahead)]
    if day.weekday is not None:
        return [_past_weekday(day, day.weekday, today)]
    if day.month is None:
        months = range(0, -12, -1) if day.months is None else [day.months]
        firsts = [_month_of(today, one) for one in months]
        return _existing_dates([(one.year, one.month, day.day) for one in firsts], today)
    years = [day.year] if day.year else [today.year - back for back in range(YEARS_BACK)]
    orders = [(day.month, day.day), (day.day, day.month)][: 1 + day.either_way]
    readings = [_existing_dates([(one, *order) for one in years], today) for order in orders]
    return [one for of_a_year in zip(*readings, strict=False) for one in of_a_year]


def _next_weekday(day: Day, weekday: int, today: date) -> date:
    if day.weeks is not None:
        return _of_week(today, day.weeks, weekday)
    ahead = (weekday - today.weekday()) % 7
    return today + timedelta(days=ahead or (0 if day.may_be_today else 7))


def _past_weekday(day: Day, weekday: int, today: date) -> date:
    if day.weeks is not None:
        return _of_week(today, day.weeks, weekday)
    back = (today.weekday() - weekday) % 7
    return today - timedelta(days=back or (7 if day.may_be_today is False else 0))


def _of_week(today: date, weeks: int, weekday: int) -> date:
    return today + timedelta(days=weekday - today.weekday() + 7 * weeks)


def _month_of(today: date, months: int) -> date:
    of_year, month_before = divmod(today.year * 12 + today.month - 1 + months, 12)
    return date(of_year, month_before + 1, 1)


def _existing_dates(dates: Sequence[tuple[int, int, int]], today: date) -> list[date]:
    days = []
    for one in dates:
        try:
            days.append(date(*one))
        except ValueError:
            continue
    return [one for one in days if one <= today]


def named_days(text: str, expressions: Sequence[DayExpression], today: date) -> Iterator[Day]:
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


def _date_of_match(match: re.Match[str], today: date) -> Day:
    """A month in figures or by name, a day, and maybe a year."""
    year_text = match["year"]
    of_year = read_year(year_text, today.year) if year_text else None
    numbers = (of_year, read_month(match["month"]), read_number(match["day"]) or 0)
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
    return Day(*match.span(), day=read_number(match["day"]) or 0, months=months)


def _of_some_month(match: re.Match[str], _: date) -> Day:
    certain = match[0][-1] in "号號" and bool(_THAT_DAY.match(match.string, match.end()))
    return Day(*match.span(), day=read_number(match["day"]) or 0, certain=certain)


def _slashed_date(match: re.Match[str], _: date) -> Day:
    first, second = int(match["a"]), int(match["b"])
    either_way = first != second and max(first, second) <= 12
    in_order = (second, first) if first > 12 else (first, second)
    text, (start, end) = match.string, match.span()
    lead = _LEADS_TO_DATE.search(text[max(0, start - _LONGEST_LEAD) : match.start("a")].lower())
    certain = lead or text[end:].lstrip()[:1] in ("日", "号") or _THAT_DAY.match(text, end)
    return Day(start, end, None, *in_order, either_way=either_way, certain=bool(certain))


DATE_EXPRESSIONS = (
    _expression(
        r"(?<!\d)(?P<year>\d{4})(?P<s>[-/.])(?P<month>\d{1,2})(?P=s)(?P<day>\d{1,2})(?!\d)",
        _date_of_match,
    ),
    _expression(
        rf"(?:{YEAR_ZH}\s*)?(?<![\d第])(?P<month>{NUMBER})\s*月\s*(?P<day>{COUNT})(?:\s*[日号號])?",
        _date_of_match,
    ),
    _expression(
        rf"(?P<which>上{{1,3}}个?|下{{1,3}}个?|这个?|本)月的?\s*(?P<day>{NUMBER})[日号號]",
        _of_month,
    ),
    _expression(
        rf"\b(?:on )?{MONTH_NAME}\s+{_DAY}\b(?!\s*(?:of\s+(?:us|the|them)|people|%|:\d)){YEAR_EN}?",
        _date_of_match,
    ),
    _expression(
        rf"\b(?:on )?(?:the )?(?<![\d.]){_DAY}(?:\s+of)?\s+{MONTH_NAME}"
        rf"(?!\s+\d{{1,2}}\b(?!:|\s?[ap]\.?m)){YEAR_EN}?",
        _date_of_match,
    ),
    _expression(
        r"(?:\bon )?(?<![\d/])(?P<a>\d{1,2})/(?P<b>\d{1,2})(?![\d/%])(?!\s*(?:of\b|的人))",
        _slashed_date,
    ),
    _expression(
        rf"(?<![月\d第编账])(?P<day>{COUNT})[日号號](?![楼线门馆机桌院厅店厂仓车口])",
        _of_some_month,
    ),
    _expression(rf"\b(?:on )?the {_DAY} of (?P<which>last|this|next) month\b", _of_month),
    _expression(r"\bon the (?P<day>\d{1,2})(?:st|nd|rd|th)\b", _of_some_month),
)
PAST_DAY_EXPRESSIONS = (
    _expression("大前天", _days_ahead(-3)),
    _expression(
        r"(?<![天几])前天|前晚|(?:the\s+)?day\s+before\s+yesterday|night\s+before\s+last",
        _days_ahead(-2),
    ),
    _expression(r"昨晚|昨夜|last\s+night", _days_ahead(-1)),
    _expression(r"昨[天日儿早]|\byesterday\b", _days_ahead(-1)),
)
