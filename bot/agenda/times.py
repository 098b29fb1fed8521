"""Times in a calendar: working hours, when somebody is free, and in which zone they live. Pure.

Spans are in seconds since the epoch, so days on which the clock changes are as long as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bot.feishu.calendars import BusySpan, CalendarEvent
from bot.text.dates.recurrence import at_wall_clock

WORK_BEGINS, NOON_ENDS, AFTERNOON_BEGINS, WORK_ENDS = time(9), time(12), time(13), time(18)
STEP_S = 1800  # meetings that the bot places begin at the full or half hour
_MIDNIGHT = time(0)
PARTS = {
    "": (WORK_BEGINS, WORK_ENDS),
    "morning": (WORK_BEGINS, NOON_ENDS),
    "afternoon": (AFTERNOON_BEGINS, WORK_ENDS),
}


def working_hours(day: date, zone: ZoneInfo, part: str = "") -> BusySpan:
    """Nine to six by the clock of `zone`, or a `part` of them: morning, afternoon."""
    begins, ends = PARTS[part]
    return BusySpan(moment_s(day, begins, zone), moment_s(day, ends, zone))


def whole_days(first: date, last: date, zone: ZoneInfo) -> BusySpan:
    """From the midnight before `first` to the midnight after `last`."""
    after = date.fromordinal(last.toordinal() + 1)
    return BusySpan(moment_s(first, _MIDNIGHT, zone), moment_s(after, _MIDNIGHT, zone))


def moment_s(day: date, at: time, zone: ZoneInfo) -> int:
    """Seconds since the epoch when the clock of `zone` first shows that."""
    return int(at_wall_clock(datetime.combine(day, at), zone).timestamp())


def merged(spans: Iterable[BusySpan]) -> tuple[BusySpan, ...]:
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


def within(window: BusySpan, spans: Iterable[BusySpan]) -> tuple[BusySpan, ...]:
    """What of the spans lies in the window."""
    cut = (
        BusySpan(max(one.start_s, window.start_s), min(one.end_s, window.end_s)) for one in spans
    )
    return merged(one for one in cut if one.start_s < one.end_s)


def free_within(window: BusySpan, busy: Iterable[BusySpan]) -> tuple[BusySpan, ...]:
    """What of the window is left."""
    free, at = [], window.start_s
    for span in within(window, busy):
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


def meets(span: BusySpan, busy: Iterable[BusySpan]) -> bool:
    """Whether any of `busy` lies in the span; what takes no time keeps nobody busy."""
    return any(one.start_s < span.end_s and one.end_s > span.start_s for one in merged(busy))


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
