"""What calendars and tasks hold, as the model is given it. Pure.

Titles, places and ids are in it only where `is_alone`: nobody but the asker reads the answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from bot.agenda.plans import due_day
from bot.agenda.times import free_within, meets, merged, whole_days, within, working_hours
from bot.agents.tool_types.outcomes import Fields, ToolOutcome
from bot.feishu.calendars import BusySpan, CalendarEvent, ListedTask
from memory.text import one_line

_SATURDAY = 5


@dataclass(frozen=True, slots=True)
class PersonAgenda:
    """When somebody is busy. `events`: what it is, of the asker alone; None: nobody says."""

    name: str
    is_asker: bool
    busy: tuple[BusySpan, ...]
    events: tuple[CalendarEvent, ...] | None = None


def times_of_events(events: Sequence[CalendarEvent]) -> tuple[BusySpan, ...]:
    """When these keep one busy."""
    return merged(BusySpan(one.start_s, one.end_s) for one in events if one.is_busy)


def agenda_told(
    people: Sequence[PersonAgenda], days: tuple[date, date], now: datetime, *, is_alone: bool
) -> ToolOutcome:
    """When they are free or busy on these days, by the clock of `now`."""
    zone = _zone(now)
    day_lines = [
        _day_of(person, day, zone, now, is_alone=is_alone)
        for day in _days(*days)
        for person in people
    ]
    lines = [f"Local times of {zone}; working hours are 09:00-18:00."]
    lines += [_line(one) for one in day_lines]
    if not is_alone:
        lines.append("In a group only free or busy times are told. Do not guess what they are for.")
    fields = {
        "zone": str(zone),
        "now": f"{now:%Y-%m-%dT%H:%M}",
        "days": day_lines,
        "is_alone": is_alone,
    }
    return ToolOutcome("\n".join(lines), "agenda-told", fields)


def tasks_told(
    tasks: Iterable[ListedTask], days: tuple[date, date], now: datetime, *, is_alone: bool
) -> ToolOutcome:
    """What is due until the last of these days, what is overdue too."""
    zone, last = _zone(now), days[1]
    due = sorted((_due(one, zone), one.title, one.guid) for one in tasks if one.due_s)
    due_tasks = [(day, title, guid) for day, title, guid in due if day <= last]
    rows = [
        {"day": f"{day}", "overdue": day < now.date(), "title": one_line(title), "guid": guid}
        for day, title, guid in due_tasks
    ]
    if is_alone:
        lines = [f"{one['day']}{_late(one)}: {one['title']} (ID: {one['guid']})" for one in rows]
    else:
        counts = Counter(f"{one['day']}{_late(one)}" for one in rows)
        lines = [f"{day}: {n} task(s)" for day, n in counts.items()]
        rows = [{**one, "title": "", "guid": ""} for one in rows]
    text = "\n".join([f"{len(rows)} task(s) due until {last}.", *lines])
    if not is_alone and rows:
        text += "\nIn a group it is not told what they are; they can ask in the private chat."
    fields = {"tasks": rows, "now": f"{now:%Y-%m-%dT%H:%M}", "is_alone": is_alone}
    return ToolOutcome(text, "tasks-told", fields)


def _days(first: date, last: date) -> list[date]:
    """Without the weekend, where more than it is asked for."""
    every = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    working = [one for one in every if one.weekday() < _SATURDAY]
    return working if working and len(every) > 2 else every


def _day_of(
    person: PersonAgenda, day: date, zone: ZoneInfo, now: datetime, *, is_alone: bool
) -> dict[str, Any]:
    whole, hours = whole_days(day, day, zone), working_hours(day, zone)
    left = BusySpan(max(hours.start_s, int(now.timestamp())), hours.end_s)
    free = free_within(left, person.busy) if left.start_s < left.end_s else ()
    events = person.events if is_alone and person.is_asker else None
    return {
        "name": person.name,
        "is_asker": person.is_asker,
        "day": f"{day}",
        "busy": [_clock(one, zone) for one in within(whole, person.busy)],
        "free": [_clock(one, zone) for one in free],
        "events": [
            _event(one, whole, zone)
            for one in events or ()
            if meets(BusySpan(one.start_s, one.end_s), [whole])
        ],
    }


def _event(event: CalendarEvent, day: BusySpan, zone: ZoneInfo) -> dict[str, str]:
    whole = BusySpan(event.start_s, event.end_s)
    (span,) = within(day, [whole]) or (whole,)  # one that takes no time
    return {
        "when": _clock(span, zone) if event.zone else "",
        "title": one_line(event.title),
        "place": one_line(event.place),
    }


def _clock(span: BusySpan, zone: ZoneInfo) -> str:
    start, end = (datetime.fromtimestamp(one, zone) for one in (span.start_s, span.end_s))
    until = "24:00" if end.date() > start.date() and not (end.hour or end.minute) else ""
    return f"{start:%H:%M}-{until or format(end, '%H:%M')}"


def _line(fields: Fields) -> str:
    """“Chen, 2026-11-27 Friday: busy 10:00-11:00; free 09:00-10:00, 11:00-18:00”."""
    events = [_event_line(one) for one in fields["events"]]
    parts = [
        f"{label} {', '.join(spans)}"
        for label, spans in (
            ("busy", fields["busy"]),
            ("free", fields["free"]),
            ("events:", events),
        )
        if spans
    ]
    who = (
        f"{one_line(fields['name'])} (who asks)" if fields["is_asker"] else one_line(fields["name"])
    )
    day = date.fromisoformat(fields["day"])
    return f"{who}, {day:%Y-%m-%d %A}: {'; '.join(parts) or 'not busy, working hours are over'}"


def _event_line(event: Fields) -> str:
    place = f" ({event['place']})" if event["place"] else ""
    return f"{event['when'] or 'all day'} {event['title']}{place}"


def _late(task: Fields) -> str:
    return " (overdue)" if task["overdue"] else ""


def _due(task: ListedTask, zone: ZoneInfo) -> date:
    if task.is_all_day:
        return due_day(task.due_s)
    return datetime.fromtimestamp(task.due_s, zone).date()


def _zone(now: datetime) -> ZoneInfo:
    return now.tzinfo if isinstance(now.tzinfo, ZoneInfo) else ZoneInfo("UTC")
