"""Finds which items of a list are meant: by number, day, time or words, one or several. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.text.times import PERIOD_PATTERN, read_time_alone
from memory.dates import DATE_EXPRESSIONS, DAY_EXPRESSIONS, Day, named_days, next_date
from memory.tables.notes import search_terms

_NUMBERS_ZH = "一二三四五六七八九十"
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
_CARDINALS = "one two three four five six seven eight nine ten".split()
_POSITION = re.compile(
    rf"第\s*([{_NUMBERS_ZH}]|\d{{1,3}})(?=\s*[条个篇份笔便项])|\b({'|'.join(_ORDINALS)})\b"
    r"|\b(\d{1,3})(?:st|nd|rd|th)\b(?! of\b)"
    r"|(?:\bnotes?|\breminders?|\bnumbers?|\bno\.?|#) ?(\d{1,3})\b|^\s*(\d{1,3})\s*$"
    rf"|^(?:number )?({'|'.join(_CARDINALS)})$",
    re.IGNORECASE,
)
_NEXT = re.compile(
    r"^(?:the )?(?:next|soonest)(?: one)?$|^(?:下|最近的?)一?[个条项]$", re.IGNORECASE
)
_LAST = re.compile(r"\b(?:last|latest|newest)\b|最后|最新", re.IGNORECASE)
_POINTING = re.compile(
    r"\b(?:that|this|the|my|our|it|ones?|notes?|reminders?|about|to|for|on|of|just|now"
    rf"|called|titled|named|last|latest|newest|{'|'.join(_ORDINALS)})\b"
    r"|['’]s\b|第[一二三四五六七八九十]|刚才|上一|[那这该它我]|[条个篇份]|的?(?:笔记|便签|提醒)|的",
    re.IGNORECASE,
)
LAST = -1
_AND = re.compile(r"[,，、;&]|\band\b|[和与跟]|还有", re.IGNORECASE)
_BARE_NTH = re.compile(rf"^\s*第?([{_NUMBERS_ZH}]|\d{{1,3}})[个条项]?\s*$")
_TOGETHER = re.compile(
    r"\b(?:(?:them|these|those) )?(?:(?P<both>both)|all|every|each"
    r"|everything)\b(?: of)?(?: (?:them|these|those)\b)?"
    r"|[这那]?(?<!第)(?P<count>[两三])[个条项篇份]都?|所有|全部|清空|每一?[个条]|都|统统|全$",
    re.IGNORECASE,
)
_EXCEPT = re.compile(
    r"\b(?:except|but|apart from|besides|other than)(?: for| not)? (?P<en>.+)$"
    r"|除了?(?P<zh>[^，,]{1,30}?)(?:以外|之外|外)?[，,]?(?:的?(?:其[他余它]|别的)(?:[的个条项]|提醒|笔记)*)?"
    r"(?:都|全|统统|的?所有|$)"
    r"|[只仅]保?留下?(?P<keep>[^，,]{1,30}?)(?:[，,]|$)",
    re.IGNORECASE,
)


_PERIODS = (
    (("凌晨", "清晨", "早上", "早晨", "上午", "早", "morning"), range(12)),
    (("中午",), range(11, 14)),
    (("下午", "afternoon"), range(12, 18)),
    (("傍晚", "晚上", "晚", "evening", "night", "tonight", "at night"), range(17, 24)),
)


@dataclass(frozen=True, slots=True)
class ListedItem:
    """One item of a list. `at`: its local time, if it has one."""

    id: str
    text: str
    at: datetime | None = None


def list_position(ref: str, last: int) -> int:
    """The number that `ref` names, from 1; 0 if it names none. “The last one” is `last`."""
    if match := _POSITION.search(ref):
        chinese, english, *digits, cardinal = match.groups()
        if cardinal:
            return _CARDINALS.index(cardinal.lower()) + 1
        if chinese and not chinese.isdecimal():
            return _NUMBERS_ZH.index(chinese) + 1
        if english:
            return _ORDINALS.index(english.lower()) + 1
        return int(chinese or next(digit for digit in digits if digit))
    return last if _LAST.search(ref) else 0


def is_only_position(text: str) -> bool:
    """True for “2”, “the second one”, 第二个."""
    return bool(list_position(text, LAST)) and not search_terms(
        naming_words(_POSITION.sub(" ", text))
    )


def naming_words(ref: str) -> str:
    """The words of a reference that name something, without those that only point."""
    return _POINTING.sub(" ", ref)


def choose_items(ref: str, items: Sequence[ListedItem], now: datetime) -> list[ListedItem]:
    """The items that `ref` names: all of them where it only points.

    “The 3 March one” is a day, “the 3rd” a number. Words choose among the items of that day.
    """
    named_day = next(named_days(ref, (*DATE_EXPRESSIONS, *DAY_EXPRESSIONS), now.date()), None)
    number = 0 if named_day else list_position(ref, len(items))
    if number:
        return list(items[number - 1 : number])
    if _NEXT.search(ref.strip()):
        dated_items = [one for one in items if one.at]
        return sorted(dated_items, key=lambda one: str(one.at))[:1]
    if named_day:
        items = _on(named_day, items, now)
        ref = f"{ref[: named_day.start]} {ref[named_day.end :]}"
    if (period := PERIOD_PATTERN.fullmatch(naming_words(ref).strip())) and not number:
        hours = next(span for words, span in _PERIODS if period[0].lower() in words)
        return [one for one in items if one.at and one.at.hour in hours]
    if clock := read_time_alone(naming_words(ref)):
        at = (clock.hour, clock.minute)
        return [one for one in items if one.at and (one.at.hour, one.at.minute) == at]
    wanted_terms = set(search_terms(naming_words(ref)))
    if not wanted_terms:
        return list(items)
    shared_counts = {one.id: len(wanted_terms & set(search_terms(one.text))) for one in items}
    best = max(shared_counts.values(), default=0)
    return [one for one in items if best and shared_counts[one.id] == best]


def names_several(ref: str) -> bool:
    """True for “both”, “notes 1 and 3”, “all but the first”, 全部, 第一条和第三条."""
    return bool(_TOGETHER.search(ref) or _EXCEPT.search(ref)) or only_numbers(ref)


def names_all(ref: str) -> bool:
    """True for “all my notes”, 全部: whatever there is, without a number or an exception."""
    several = _TOGETHER.search(ref)
    return bool(several and not (several["both"] or several["count"] or _EXCEPT.search(ref)))


def only_numbers(ref: str) -> bool:
    """True for “notes 1 and 3”, 第一条和第三条."""
    parts = _parts(ref)
    return len(parts) > 1 and all(list_position(part, LAST) for part in parts)


def choose_together(
    ref: str, items: Sequence[ListedItem], now: datetime
) -> list[ListedItem] | None:
    """The items that `ref` names at once: “both”, “all of Friday's”, “1 and 2”, “all but the last”,
    “the milk and the bread one”. None if it names no more than one; empty if not all of them are
    there."""
    if exception := _EXCEPT.search(ref):
        return _all_but(exception, items, now)
    parts = _parts(ref)
    positions = [list_position(part, len(items)) for part in parts]
    if len(parts) > 1 and all(positions):
        are_there = max(positions) <= len(items)
        return [items[place - 1] for place in dict.fromkeys(positions)] if are_there else []
    if not (several := _TOGETHER.search(ref)):
        return _one_by_one(ref, parts, items, now)
    rest = _TOGETHER.sub(" ", ref)
    day = next(named_days(rest, (*DATE_EXPRESSIONS, *DAY_EXPRESSIONS), now.date()), None)
    if search_terms(naming_words(f"{rest[: day.start]} {rest[day.end :]}" if day else rest)):
        return _one_by_one(ref, parts, items, now)  # “all hands”
    choices = choose_items(rest, items, now)
    count = {"三": 3, "两": 2}.get(several["count"] or "", 2 if several["both"] else len(choices))
    return choices if len(choices) == count else []


def _parts(ref: str) -> list[str]:
    return [_BARE_NTH.sub(r"第\1个", part) for part in _AND.split(ref) if part.strip()]


def _all_but(
    exception: re.Match[str], items: Sequence[ListedItem], now: datetime
) -> list[ListedItem]:
    """All of what stands before the exception, or of the list; nothing if no exception is there."""
    before = exception.string[: exception.start()]
    kept_words = next(filter(None, exception.groups()))
    candidates = choose_together(before, items, now)
    candidates = choose_items(before, items, now) if candidates is None else candidates
    kept_items = choose_together(kept_words, items, now)
    kept_items = choose_items(kept_words, items, now) if kept_items is None else kept_items
    return (
        [one for one in candidates if one not in kept_items]
        if len(kept_items) < len(items) and kept_items
        else []
    )


def _one_by_one(
    ref: str, parts: Sequence[str], items: Sequence[ListedItem], now: datetime
) -> list[ListedItem] | None:
    """The items that the parts of `ref` name by words, each part one; empty unless each does. None
    if it names no more than one."""
    words = set(search_terms(naming_words(ref)))
    if len(parts) < 2 or any(words <= set(search_terms(one.text)) for one in items):
        return None  # one item has all the words: “milk and bread”
    if not all(search_terms(naming_words(part)) for part in parts):
        return None
    choices = [choose_items(part, items, now) for part in parts]
    chosen_items = [one[0] for one in choices if len(one) == 1]
    return chosen_items if len(chosen_items) == len(parts) == len(set(chosen_items)) else []


def _on(named_day: Day, items: Sequence[ListedItem], now: datetime) -> list[ListedItem]:
    """The items of that day; of a weekday also those of another week, if there are no others."""
    dated_items = [(one, one.at) for one in items if one.at]
    day = next_date(named_day, now.date())
    on_day = [one for one, at in dated_items if f"{at:%Y-%m-%d}" == day]
    if on_day or named_day.weekday is None:
        return on_day
    return [one for one, at in dated_items if at.weekday() == named_day.weekday]
