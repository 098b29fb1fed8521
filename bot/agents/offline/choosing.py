"""Picks items of a numbered list by number, by day, by time of day or by words. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.text.dates.time_of_day import time_alone
from memory.dates.days import Day, next_date
from memory.dates.expressions import DATES, DAYS, named_days
from memory.tables.notes import search_terms

_NUMBERS_ZH = "一二三四五六七八九十"
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
_POSITION = re.compile(
    rf"第([{_NUMBERS_ZH}]|\d{{1,3}})(?=[条个篇份笔便项])|\b({'|'.join(_ORDINALS)})\b"
    r"|\b(\d{1,3})(?:st|nd|rd|th)\b(?! of\b)"
    r"|(?:\bnote|\breminder|\bnumber|\bno\.?|#) ?(\d{1,3})\b|^\s*(\d{1,3})\s*$",
    re.IGNORECASE,
)
_NEXT = re.compile(
    r"^(?:the )?(?:next|soonest)(?: one)?$|^(?:下|最近的?)一?[个条项]$", re.IGNORECASE
)
_LAST = re.compile(r"\b(?:last|latest|newest)\b|最后|最新", re.IGNORECASE)
_POINTING = re.compile(
    r"\b(?:that|this|the|my|our|it|one|ones|note|reminder|about|to|for|on|of|just|now)\b"
    r"|['’]s\b|第[一二三四五六七八九十]|刚才|上一|[那这该它我]|[条个篇份]|的?(?:笔记|便签|提醒)|的",
    re.IGNORECASE,
)
LAST = -1


@dataclass(frozen=True, slots=True)
class Listed:
    """One item of a list. `at`: its local time, if it has one."""

    id: str
    text: str
    at: datetime | None = None


def position(ref: str, last: int) -> int:
    """The number that `ref` names, from 1; 0 if it names none. “The last one” is `last`."""
    if match := _POSITION.search(ref):
        chinese, english, *digits = match.groups()
        if chinese and not chinese.isdecimal():
            return _NUMBERS_ZH.index(chinese) + 1
        if english:
            return _ORDINALS.index(english.lower()) + 1
        return int(chinese or next(digit for digit in digits if digit))
    return last if _LAST.search(ref) else 0


def naming(ref: str) -> str:
    """The words of a reference that name something, without those that only point."""
    return _POINTING.sub(" ", ref)


def choose(ref: str, items: Sequence[Listed], now: datetime) -> list[Listed]:
    """The items that `ref` names: all of them where it only points.

    “The 3 March one” is a day, “the 3rd” a number. Words choose among the items of that day.
    """
    named_day = next(named_days(ref, (*DATES, *DAYS), now.date()), None)
    number = 0 if named_day else position(ref, len(items))
    if number:
        return list(items[number - 1 : number])
    if _NEXT.search(ref.strip()):
        dated_items = [one for one in items if one.at]
        return sorted(dated_items, key=lambda one: str(one.at))[:1]
    if named_day:
        items = _on(named_day, items, now)
        ref = f"{ref[: named_day.start]} {ref[named_day.end :]}"
    if clock := time_alone(naming(ref)):
        at = (clock.hour, clock.minute)
        return [one for one in items if one.at and (one.at.hour, one.at.minute) == at]
    wanted_terms = set(search_terms(naming(ref)))
    if not wanted_terms:
        return list(items)
    shared_counts = {one.id: len(wanted_terms & set(search_terms(one.text))) for one in items}
    best = max(shared_counts.values(), default=0)
    return [one for one in items if best and shared_counts[one.id] == best]


def _on(named_day: Day, items: Sequence[Listed], now: datetime) -> list[Listed]:
    """The items of that day; of a weekday also those of another week, if there are no others."""
    dated_items = [(one, one.at) for one in items if one.at]
    day = next_date(named_day, now.date())
    on_day = [one for one, at in dated_items if f"{at:%Y-%m-%d}" == day]
    if on_day or named_day.weekday is None:
        return on_day
    return [one for one, at in dated_items if at.weekday() == named_day.weekday]
