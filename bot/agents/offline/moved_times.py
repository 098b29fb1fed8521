"""Reads when a reminder is moved to, for the offline model. Pure.

What is not said stays as it was."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta

from bot.text.moments import SpokenMoment, read_moment
from bot.text.times import PERIOD_PATTERN
from memory.dates import DATE_EXPRESSIONS, DAY_EXPRESSIONS, named_days

_DAYS = (*DATE_EXPRESSIONS, *DAY_EXPRESSIONS)
_HALVES = {True: ("in the morning", "in the evening"), False: ("早上", "下午")}
_SAYS_HALF = re.compile(r"\d ?[ap]\.?m\b|\bnoon\b|midnight|\b0\d:", re.IGNORECASE)
_NOON = 12


def moved_time(words: str, old: datetime | None, now: datetime) -> SpokenMoment:
    """When a reminder is to come now: a day alone keeps its time of day, a time alone its day."""
    time = read_moment(words, now)
    if old is None or time.problem not in ("", "missing", "halves"):
        return time
    is_day = any(named_days(words, _DAYS, now.date()))
    if time.problem == "missing":
        return read_moment(f"{words} {old:%H:%M}", now) if is_day else time
    if time.problem == "halves":
        first, second = _HALVES[words.isascii()]
        marks = (
            (f"{words} {first}", f"{words} {second}")
            if words.isascii()
            else (first + words, second + words)
        )
        return min((moved_time(one, old, now) for one in marks), key=lambda one: _apart(one, old))
    same_day = read_moment(f"{old:%Y-%m-%d} {words}", now)
    is_coming = not same_day.problem and same_day.at > f"{now:%Y-%m-%dT%H:%M}"
    moment = time if is_day or time.rest.strip() or not is_coming else same_day
    return _in_nearer_half(words, moment, old)


def _in_nearer_half(words: str, moment: SpokenMoment, old: datetime) -> SpokenMoment:
    """“9:30” of a reminder at nine in the evening is in the evening."""
    at = datetime.fromisoformat(moment.at)
    if at.hour >= _NOON or PERIOD_PATTERN.search(words) or _SAYS_HALF.search(words):
        return moment
    evening = replace(moment, at=f"{at + timedelta(hours=_NOON):%Y-%m-%dT%H:%M}")
    return min(moment, evening, key=lambda one: _apart(one, old))


def _apart(moment: SpokenMoment, old: datetime) -> float:
    """Hours between the times of day."""
    at = datetime.fromisoformat(moment.at) if moment.at else old
    return abs(at.hour - old.hour) + abs(at.minute - old.minute) / 60
