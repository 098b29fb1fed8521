"""When something that repeats comes next, by the wall clock of a time zone. Pure.

The day and the hour are the wall clock's: 9:00 stays 9:00 when summer time begins or ends. A time
that the clock skips comes as much later as the clock jumps, as Python reads it (PEP 495); one that
it shows twice comes the first time only. A month without the day has it on its last day.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

from memory.tables.timers import Repeats

_DAY = timedelta(days=1)
_FRIDAY = 4


def at_wall_clock(local: datetime, zone: ZoneInfo) -> datetime:
    """The moment, in UTC, when the clock of `zone` first shows the naive `local`, or would."""
    return local.replace(tzinfo=zone, fold=0).astimezone(UTC)


def is_skipped(local: datetime, zone: ZoneInfo) -> bool:
    """Whether the clock of `zone` never shows the naive `local`."""
    return at_wall_clock(local, zone).astimezone(zone).replace(tzinfo=None) != local


def next_after(
    local: datetime, repeats: Repeats, zone: ZoneInfo, after: datetime
) -> datetime | None:
    """The first time later than `after` (aware) of what begins at the naive `local`; in UTC. None:
    there is none any more."""
    if repeats == "once":
        only = at_wall_clock(local, zone)
        return only if only > after else None
    start = max(0, _skippable(local, repeats, after.astimezone(zone).replace(tzinfo=None)))
    moments = (at_wall_clock(one, zone) for one in _from(local, repeats, start))
    return next(moment for moment in moments if moment > after)


def last_before(local: datetime, repeats: Repeats, zone: ZoneInfo, before: datetime) -> datetime:
    """The last time earlier than `before` (aware) of what repeats as it does at the naive `local`,
    also where it began later; in UTC."""
    start = _skippable(local, repeats, before.astimezone(zone).replace(tzinfo=None)) - 4
    moments = (at_wall_clock(one, zone) for one in _from(local, repeats, start))
    return list(takewhile(lambda moment: moment < before, moments))[-1]


def _skippable(local: datetime, repeats: Repeats, now: datetime) -> int:
    """So many steps from `local` that the next is certainly not in the future of `now`."""
    if repeats == "monthly":
        return (now.year - local.year) * 12 + now.month - local.month - 2
    days = (now - local).days - 3
    return days // 7 - 1 if repeats == "weekly" else days


def _from(local: datetime, repeats: Repeats, start: int) -> Iterator[datetime]:
    """The wall clock times of what repeats, from step `start` on."""
    step = start
    while True:
        if repeats == "monthly":
            yield _months_later(local, step)
        elif repeats == "weekly":
            yield local + 7 * step * _DAY
        elif (day := local + step * _DAY).weekday() <= _FRIDAY or repeats == "daily":
            yield day
        step += 1


def _months_later(local: datetime, months: int) -> datetime:
    year, month = divmod(local.year * 12 + local.month - 1 + months, 12)
    return local.replace(
        year=year, month=month + 1, day=min(local.day, monthrange(year, month + 1)[1])
    )
