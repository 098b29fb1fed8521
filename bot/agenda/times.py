"""Calculates times in a calendar, and reads the days and times that people write, in English and
Chinese. `AgendaRefused` says in a sentence why nothing was read or written. Pure.

Spans are in seconds since the epoch, so a day on which the clock changes has its real length."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bot.feishu.calendars import NOT_IN_TENANT, BusySpan, CalendarEvent
from bot.feishu.errors import FeishuError, FeishuFailure
from bot.text.languages import Catalogue, Language
from bot.text.moments import read_moment
from bot.text.times import moment_at_wall_clock
from memory.dates import (
    DATE_EXPRESSIONS,
    DAY_EXPRESSIONS,
    PAST_DAY_EXPRESSIONS,
    named_days,
    next_date,
)

Reason = Literal[
    "not_connected", "not_approved", "app_scope", "busy", "unavailable", "left", "outside",
    "outsiders_read", "private_calendar", "own_private_calendar", "unknown_person",
    "several_people", "past", "far", "no_day", "unclear_time", "no_room", "no_title",
    "long_title", "length", "too_many", "not_taken", "not_set_up",
]  # fmt: skip

_REASONS: dict[int, Reason] = {
    99991679: "not_approved",
    99991672: "app_scope",
    NOT_IN_TENANT: "left",
    1470500: "not_taken",
    **dict.fromkeys((99991400, 190004, 190005, 190010), "busy"),
}

TEXTS = Catalogue(__file__)
say = TEXTS.say


class AgendaRefused(Exception):
    """Nothing was done. `fields` fill the sentence; `scopes`: what the person has not granted."""

    def __init__(self, reason: Reason, *, scopes: tuple[str, ...] = (), **fields: Any) -> None:
        super().__init__(reason)
        self.reason = reason
        self.scopes = scopes
        self.fields = {**fields, "scopes": ", ".join(scopes)}

    def text_in(self, language: Language) -> str:
        """One sentence to people."""
        return say(f"why-{self.reason}", language, **self.fields)


def refusal_of(failure: FeishuFailure, *, name: str = "") -> AgendaRefused:
    """What a failed call means for whoever asked; `name`: of whom it asked."""
    if not isinstance(failure, FeishuError):
        return AgendaRefused("unavailable")
    reason = _REASONS.get(failure.code, "unavailable")
    return AgendaRefused(reason, scopes=failure.scopes, name=name)


WORK_BEGINS, NOON_ENDS, AFTERNOON_BEGINS, WORK_ENDS = time(9), time(12), time(13), time(18)
STEP_S = 1800  # meetings that the bot places begin at the full or half hour
_MIDNIGHT = time(0)
PARTS = {
    "": (WORK_BEGINS, WORK_ENDS),
    "morning": (WORK_BEGINS, NOON_ENDS),
    "afternoon": (AFTERNOON_BEGINS, WORK_ENDS),
}

MOST_DAYS = 14
_LONGEST = 300
_A_WEEK = 7
_FARTHEST = timedelta(days=366)
_DAYS = (*DAY_EXPRESSIONS, *DATE_EXPRESSIONS)
_THIS_WEEK = re.compile(r"\bthis week\b|[这本]个?(?:周|星期|礼拜)(?![一二三四五六日天末])", re.I)
_NEXT_WEEK = re.compile(r"\bnext week\b|下个?(?:周|星期|礼拜)(?![一二三四五六日天末])", re.I)
_UNTIL = re.compile(
    r"\b(?:by|before|until|till|due(?: on)?|no later than)\b(?: the)?|(?:之|以)?前(?!天)"
    r"|截止到?|之内|到期",
    re.I,
)
_MORNING = re.compile(r"\bmorning\b|上午|早上", re.I)
_AFTERNOON = re.compile(r"\bafternoon\b|下午", re.I)


def working_hours(day: date, zone: ZoneInfo, part: str = "") -> BusySpan:
    """Nine to six by the clock of `zone`, or a `part` of them: morning, afternoon."""
    begins, ends = PARTS[part]
    return BusySpan(moment_s(day, begins, zone), moment_s(day, ends, zone))


def whole_days(first: date, last: date, zone: ZoneInfo) -> BusySpan:
    """From the midnight before `first` to the midnight after `last`."""
    after = date.fromordinal(last.toordinal() + 1)
    return BusySpan(moment_s(first, _MIDNIGHT, zone), moment_s(after, _MIDNIGHT, zone))


def event_span(event: CalendarEvent, zone: ZoneInfo) -> BusySpan:
    """When an event takes place for somebody in `zone`. Whole days are dated in UTC, and their last
    day counts (Feishu, calendar-v4 “create event”: its example begins and ends on one date)."""
    if event.zone:
        return BusySpan(event.start_s, event.end_s)
    first, last = (datetime.fromtimestamp(one, UTC).date() for one in (event.start_s, event.end_s))
    return whole_days(first, last, zone)


def moment_s(day: date, at: time, zone: ZoneInfo) -> int:
    """Seconds since the epoch when the clock of `zone` first shows that."""
    return int(moment_at_wall_clock(datetime.combine(day, at), zone).timestamp())


def merged_spans(spans: Iterable[BusySpan]) -> tuple[BusySpan, ...]:
    """The same times in order, with none that touch."""
    merged_spans: list[BusySpan] = []
    for span in sorted(spans, key=lambda one: (one.start_s, one.end_s)):
        if merged_spans and span.start_s <= merged_spans[-1].end_s:
            merged_spans[-1] = BusySpan(
                merged_spans[-1].start_s, max(merged_spans[-1].end_s, span.end_s)
            )
        elif span.end_s > span.start_s:
            merged_spans.append(span)
    return tuple(merged_spans)


def spans_within(window: BusySpan, spans: Iterable[BusySpan]) -> tuple[BusySpan, ...]:
    """What of the spans lies in the window."""
    cut = (
        BusySpan(max(one.start_s, window.start_s), min(one.end_s, window.end_s)) for one in spans
    )
    return merged_spans(one for one in cut if one.start_s < one.end_s)


def free_within(window: BusySpan, busy: Iterable[BusySpan]) -> tuple[BusySpan, ...]:
    """What of the window is left."""
    free, at = [], window.start_s
    for span in spans_within(window, busy):
        if span.start_s > at:
            free.append(BusySpan(at, span.start_s))
        at = span.end_s
    return (*free, BusySpan(at, window.end_s)) if at < window.end_s else tuple(free)


def first_free(
    window: BusySpan, busy: Iterable[BusySpan], length_s: int, not_before_s: int
) -> BusySpan | None:
    """The first time of that length in which nothing is; at the full or half hour after the window
    begins."""
    for free in free_within(window, busy):
        late_s = max(free.start_s, not_before_s) - window.start_s
        start_s = window.start_s + -(-max(late_s, 0) // STEP_S) * STEP_S
        if start_s + length_s <= free.end_s:
            return BusySpan(start_s, start_s + length_s)
    return None


def overlaps(span: BusySpan, busy: Iterable[BusySpan]) -> bool:
    """Whether any of `busy` lies in the span; what takes no time keeps nobody busy."""
    return any(one.start_s < span.end_s and one.end_s > span.start_s for one in merged_spans(busy))


def zone_of(events: Sequence[CalendarEvent], usual: ZoneInfo) -> ZoneInfo:
    """The zone in which somebody lives: that of most events which they made themselves, of the
    latest where there are as many. Feishu's pages name no other place where it stands."""
    own = sorted((one for one in events if one.is_own and one.zone), key=lambda one: -one.start_s)
    for name, _ in Counter(one.zone for one in own).most_common():
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError):
            continue
    return usual


@dataclass(frozen=True, slots=True)
class ParsedTime:
    """A day, and the time of day if it was said (naive, by the clock of who said it), else the
    `part` of the day: morning, afternoon or ""."""

    day: date
    at: datetime | None = None
    part: str = ""


def parse_time(words: str, now: datetime) -> ParsedTime:
    """When something is to be, as said at `now` (aware, in the zone of who says it). Raises
    `AgendaRefused`: no_day, unclear_time, far."""
    moment = _parse(words.strip()[:_LONGEST], now)
    if moment.day - now.date() > _FARTHEST:
        raise AgendaRefused("far")
    return moment


def parse_end(words: str, now: datetime) -> ParsedTime | None:
    """Until when something is to be done; None where nothing is said."""
    return parse_time(_UNTIL.sub(" ", words), now) if words.strip() else None


def parse_days(words: str, today: date) -> tuple[date, date]:
    """The first and the last day that a question is about; today where it names none."""
    if _THIS_WEEK.search(words):
        return today, today + timedelta(days=6 - today.weekday())
    if _NEXT_WEEK.search(words):
        monday = today + timedelta(days=_A_WEEK - today.weekday())
        return monday, monday + timedelta(days=6)
    days = [day for day in map(_valid_date, _named_dates(words, today)) if day]
    if not days:
        return today, today
    first, last = min(days), max(days)
    return first, min(last, first + timedelta(days=MOST_DAYS - 1))


def _parse(words: str, now: datetime) -> ParsedTime:
    if exact := _parse_iso(words, now):
        return exact
    if past := next(named_days(words, PAST_DAY_EXPRESSIONS, now.date()), None):
        raise AgendaRefused("past", at=words[past.start : past.end])
    moment = read_moment(words, now)
    if moment.at and not moment.problem:
        try:
            at = datetime.fromisoformat(moment.at)
        except ValueError:
            raise AgendaRefused("unclear_time") from None
        return _at_local(at, now)
    days = _named_dates(words, now.date())
    if moment.problem != "missing" or len(days) > 1:
        raise AgendaRefused("unclear_time")
    if not days or not (day := _valid_date(days[0])):
        raise AgendaRefused("no_day" if not days else "unclear_time")
    part = "morning" if _MORNING.search(words) else ""
    return ParsedTime(day, part="afternoon" if _AFTERNOON.search(words) else part)


def _parse_iso(words: str, now: datetime) -> ParsedTime | None:
    """What a model writes: ISO 8601, with or without a time of day or an offset."""
    try:
        at = datetime.fromisoformat(words)
    except ValueError:
        return None
    is_day = "T" not in words.upper() and ":" not in words
    parsed_time = _at_local(at.replace(second=0, microsecond=0), now)
    return replace(parsed_time, at=None) if is_day else parsed_time


def _at_local(at: datetime, now: datetime) -> ParsedTime:
    if at.tzinfo is not None:
        at = at.astimezone(now.tzinfo).replace(tzinfo=None)
    return ParsedTime(at.date(), at)


def _named_dates(words: str, today: date) -> list[str]:
    days = (next_date(one, today) for one in named_days(words, _DAYS, today))
    return list(dict.fromkeys(days))


def _valid_date(iso: str) -> date | None:
    try:
        return date.fromisoformat(iso)
    except ValueError:
        return None
