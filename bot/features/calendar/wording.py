"""Words calendars and tasks for the model, for people and for cards. Pure.

Titles, places and ids appear only where `is_alone`: nobody but the asker reads the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from bot.agenda.plans import MeetingPlan, TaskPlan, due_day
from bot.agenda.times import (
    TEXTS,
    event_span,
    free_within,
    merged_spans,
    overlaps,
    spans_within,
    whole_days,
    working_hours,
)
from bot.agents.tool_types import Fields, ToolOutcome, Wording
from bot.feishu.calendars import BusySpan, CalendarEvent, ListedTask
from bot.feishu.markup import verbatim_words
from bot.text import times
from bot.text.languages import Catalogue, Language, join_list
from memory.text import one_line

_SATURDAY = 5

say = Catalogue(__file__).say
Escape = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class PersonAgenda:
    """When somebody is busy. `events`: what it is, of the asker alone; None: nobody says."""

    name: str
    is_asker: bool
    busy: tuple[BusySpan, ...]
    events: tuple[CalendarEvent, ...] | None = None


def times_of_events(events: Sequence[CalendarEvent], zone: ZoneInfo) -> tuple[BusySpan, ...]:
    """When these keep one busy who is in `zone`."""
    return merged_spans(event_span(one, zone) for one in events if one.is_busy)


def agenda_outcome(
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


def tasks_outcome(
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
    rest = BusySpan(max(hours.start_s, int(now.timestamp())), hours.end_s)
    free = free_within(rest, person.busy) if rest.start_s < rest.end_s else ()
    events = person.events if is_alone and person.is_asker else None
    return {
        "name": person.name,
        "is_asker": person.is_asker,
        "day": f"{day}",
        "busy": [_clock(one, zone) for one in spans_within(whole, person.busy)],
        "free": [_clock(one, zone) for one in free],
        "events": [
            _event(one, whole, zone)
            for one in events or ()
            if overlaps(event_span(one, zone), [whole])
        ],
    }


def _event(event: CalendarEvent, day: BusySpan, zone: ZoneInfo) -> dict[str, str]:
    whole = event_span(event, zone)
    (span,) = spans_within(day, [whole]) or (whole,)  # one that takes no time
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


def _agenda_in_words(fields: Fields, language: Language) -> str:
    now = datetime.fromisoformat(fields["now"])
    lines = [say("agenda-zone", language, zone=fields["zone"])]
    for one in fields["days"]:
        lines += [f"- {_day_in_words(one, language, now)}"]
        lines += [f"  - {_event_in_words(event, language)}" for event in one["events"]]
    if not fields["is_alone"]:
        lines += ["", say("agenda-only-times", language)]
    return "\n".join(lines)


def _day_in_words(fields: Fields, language: Language, now: datetime) -> str:
    day = due_on(datetime.fromisoformat(fields["day"]), language, now)
    name = say("you", language) if fields["is_asker"] else one_line(fields["name"])
    busy, free = ", ".join(fields["busy"]), ", ".join(fields["free"])
    if busy and free:
        return say("agenda-busy-and-free", language, name=name, day=day, busy=busy, free=free)
    if busy:
        return say("agenda-busy", language, name=name, day=day, busy=busy)
    if free:
        return say("agenda-free", language, name=name, day=day, free=free)
    return say("agenda-nothing", language, name=name, day=day)


def _event_in_words(event: Fields, language: Language) -> str:
    when = event["when"] or say("all-day", language)
    title = event["title"] or say("untitled", language)
    if event["place"]:
        return say("event-at-place", language, when=when, title=title, place=event["place"])
    return say("event-at", language, when=when, title=title)


def _tasks_in_words(fields: Fields, language: Language) -> str:
    now, tasks = datetime.fromisoformat(fields["now"]), fields["tasks"]
    if not tasks:
        return say("no-tasks-due", language)
    lines = [say("tasks-due", language, n=len(tasks))]
    titles = [(_when_in_words(one, language, now), one["title"]) for one in tasks]
    if fields["is_alone"]:
        lines += [
            f"- {say('task-line', language, when=when, title=title)}" for when, title in titles
        ]
        return "\n".join(lines)
    for when, n in Counter(when for when, _ in titles).items():
        lines.append(f"- {say('task-count', language, when=when, n=n)}")
    return "\n".join([*lines, "", say("tasks-only-counted", language)])


def _when_in_words(task: Fields, language: Language, now: datetime) -> str:
    day = due_on(datetime.fromisoformat(task["day"]), language, now)
    return say("overdue", language, day=day) if task["overdue"] else day


def due_on(day: datetime, language: Language, now: datetime) -> str:
    """“Fri 4 Dec”."""
    return times.weekday_text(day, language, now=now)


WORDING = Wording(
    TEXTS, {"agenda-told": _agenda_in_words, "tasks-told": _tasks_in_words}, whole=True
)


def meeting_offer(plan: MeetingPlan, busy: Sequence[str], language: Language, now: datetime) -> str:
    """All that will be written, and who is busy then."""
    lines = [say("confirm-meeting", language), "", f"📅 **{verbatim_words(plan.title)}**"]
    lines.append(meeting_times(plan, language, now))
    if plan.attendees:
        lines.append(say("with", language, names=_names(plan, language, verbatim_words)))
    if busy:
        names = join_list(map(verbatim_words, busy), language)
        lines.append(say("busy-then", language, names=names))
    return "\n".join(lines)


def task_offer(plan: TaskPlan, language: Language, now: datetime) -> str:
    """All that will be written."""
    lines = [say("confirm-task", language), "", f"☑ **{verbatim_words(plan.title)}**"]
    lines.append(say("for", language, name=verbatim_words(plan.assignee.name)))
    if plan.due_s is not None:
        lines.append(say("due", language, when=due_time(plan, language, now)))
    return "\n".join(lines)


def meeting_in_one_line(
    plan: MeetingPlan, language: Language, now: datetime, show: Escape = str
) -> str:
    """Title, times and people; on a card `show` as `verbatim`."""
    parts = [show(plan.title), meeting_times(plan, language, now)]
    if plan.attendees:
        parts.append(say("with", language, names=_names(plan, language, show)))
    return " · ".join(parts)


def task_in_one_line(plan: TaskPlan, language: Language, now: datetime, show: Escape = str) -> str:
    """Title, whose, and until when; on a card `show` as `verbatim`."""
    parts = [show(plan.title), say("for", language, name=show(plan.assignee.name))]
    if plan.due_s is not None:
        parts.append(say("due", language, when=due_time(plan, language, now)))
    return " · ".join(parts)


def meeting_times(plan: MeetingPlan, language: Language, now: datetime) -> str:
    """“Thu 3 Dec at 15:00–16:00 (Asia/Shanghai)”."""
    zone = ZoneInfo(plan.zone)
    start, end = (datetime.fromtimestamp(one, zone) for one in (plan.start_s, plan.end_s))
    until = f"{end:%H:%M}" if end.date() == start.date() else _coming(end, language, now)
    return f"{_coming(start, language, now)}–{until} ({plan.zone})"


def due_time(plan: TaskPlan, language: Language, now: datetime) -> str:
    """“Fri 4 Dec”, or with the time and the zone."""
    due_s = plan.due_s or 0
    if plan.is_all_day:
        return due_on(datetime.combine(due_day(due_s), datetime.min.time()), language, now)
    at = datetime.fromtimestamp(due_s, ZoneInfo(plan.zone))
    return f"{_coming(at, language, now)} ({plan.zone})"


def _coming(at: datetime, language: Language, now: datetime) -> str:
    return times.coming_text(at, language, now=now)


def _names(plan: MeetingPlan, language: Language, show: Escape) -> str:
    return join_list((show(one.name) for one in plan.attendees), language)
