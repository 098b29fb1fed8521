"""What people say of days and times of meetings and tasks, in English and Chinese. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from bot.agenda.refusals import AgendaRefused
from bot.text.dates.moments import when
from memory.dates.days import next_date
from memory.dates.expressions import (
    DATES,
    DAYS,
    PAST_DAYS,
    named_days,
)

MOST_DAYS = 14
_LONGEST = 300
_A_WEEK = 7
_FARTHEST = timedelta(days=366)
_DAYS = (*DAYS, *DATES)
_THIS_WEEK = re.compile(r"\bthis week\b|[这本]个?(?:周|星期|礼拜)(?![一二三四五六日天末])", re.I)
_NEXT_WEEK = re.compile(r"\bnext week\b|下个?(?:周|星期|礼拜)(?![一二三四五六日天末])", re.I)
_UNTIL = re.compile(
    r"\b(?:by|before|until|till|due(?: on)?|no later than)\b(?: the)?|(?:之|以)?前(?!天)"
    r"|截止到?|之内|到期",
    re.I,
)
_MORNING = re.compile(r"\bmorning\b|上午|早上", re.I)
_AFTERNOON = re.compile(r"\bafternoon\b|下午", re.I)


@dataclass(frozen=True, slots=True)
class SaidTime:
    """A day, and the time of day if it was said (naive, by the clock of who said it), else the
    `part` of the day: morning, afternoon or ""."""

    day: date
    at: datetime | None = None
    part: str = ""


def said_time(words: str, now: datetime) -> SaidTime:
    """When something is to be, as said at `now` (aware, in the zone of who says it). Raises
    `AgendaRefused`: no_day, unclear_time, far."""
    moment = _said(words.strip()[:_LONGEST], now)
    if moment.day - now.date() > _FARTHEST:
        raise AgendaRefused("far")
    return moment


def said_end(words: str, now: datetime) -> SaidTime | None:
    """Until when something is to be done; None where nothing is said."""
    return said_time(_UNTIL.sub(" ", words), now) if words.strip() else None


def said_days(words: str, today: date) -> tuple[date, date]:
    """The first and the last day that a question is about; today where it names none."""
    if _THIS_WEEK.search(words):
        return today, today + timedelta(days=6 - today.weekday())
    if _NEXT_WEEK.search(words):
        monday = today + timedelta(days=_A_WEEK - today.weekday())
        return monday, monday + timedelta(days=6)
    days = [day for day in map(_existing, _named(words, today)) if day]
    if not days:
        return today, today
    first, last = min(days), max(days)
    return first, min(last, first + timedelta(days=MOST_DAYS - 1))


def _said(words: str, now: datetime) -> SaidTime:
    if exact := _exact(words, now):
        return exact
    if past := next(named_days(words, PAST_DAYS, now.date()), None):
        raise AgendaRefused("past", at=words[past.start : past.end])
    moment = when(words, now)
    if moment.at and not moment.problem:
        try:
            at = datetime.fromisoformat(moment.at)
        except ValueError:
            raise AgendaRefused("unclear_time") from None
        return SaidTime(at.date(), at)
    days = _named(words, now.date())
    if moment.problem != "missing" or len(days) > 1:
        raise AgendaRefused("unclear_time")
    if not days or not (day := _existing(days[0])):
        raise AgendaRefused("no_day" if not days else "unclear_time")
    part = "morning" if _MORNING.search(words) else ""
    return SaidTime(day, part="afternoon" if _AFTERNOON.search(words) else part)


def _exact(words: str, now: datetime) -> SaidTime | None:
    """What a model writes: ISO 8601, with or without a time of day or an offset."""
    try:
        at = datetime.fromisoformat(words)
    except ValueError:
        return None
    if at.tzinfo is not None:
        at = at.astimezone(now.tzinfo).replace(tzinfo=None)
    is_day = "T" not in words.upper() and ":" not in words
    return SaidTime(at.date(), None if is_day else at.replace(second=0, microsecond=0))


def _named(words: str, today: date) -> list[str]:
    days = (next_date(one, today) for one in named_days(words, _DAYS, today))
    return list(dict.fromkeys(days))


def _existing(iso: str) -> date | None:
    try:
        return date.fromisoformat(iso)
    except ValueError:
        return None
