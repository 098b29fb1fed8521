"""The tools that read a calendar and tasks as the person who asks, and that offer to write.

They write nothing: a button of the asker's does (`bot.features.calendar.feature`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import date, datetime
from functools import wraps
from typing import Any

from bot.agenda.plans import (
    Attendee,
    MeetingPlan,
    TaskPlan,
    known_people,
    length_s,
    named_attendees,
    other_people,
    task_due,
    title_of,
)
from bot.agenda.times import (
    AgendaRefused,
    ParsedTime,
    first_free,
    moment_s,
    overlaps,
    parse_days,
    parse_end,
    parse_time,
    whole_days,
    working_hours,
)
from bot.agenda.turn_agenda import TurnAgenda
from bot.agents.tool_types import Tool, ToolFailed, ToolOutcome, tool
from bot.agents.tools.confirming import propose_action
from bot.agents.tools.deps import ToolDeps
from bot.features.calendar import wording
from bot.features.calendar.wording import (
    WORDING,
    PersonAgenda,
    agenda_outcome,
    tasks_outcome,
    times_of_events,
)
from bot.feishu.calendars import BusySpan
from bot.feishu.user_scopes import READ_CALENDAR, WRITE_CALENDAR, WRITE_TASKS
from bot.text.roster import means_asker

BOOK, MAKE_TASK = "calendar.book", "calendar.task"
_MOST_LOOKED_AT = 10


def calendar_tools() -> list[Tool]:
    return [
        tool(_refusing(look_at_calendar), reads=True, is_kept=False, wording=WORDING),
        tool(_refusing(list_due_tasks), reads=True, is_kept=False, wording=WORDING),
        tool(_refusing(book_meeting), reads=True, sequential=True, wording=WORDING),
        tool(_refusing(make_task), reads=True, sequential=True, wording=WORDING),
    ]


def _refusing(function: Callable[..., Awaitable[ToolOutcome]]) -> Callable[..., Any]:
    """As a tool: what is refused is told to the model, and to people."""

    @wraps(function)
    async def describe_outcome(deps: ToolDeps, **arguments: Any) -> ToolOutcome:
        try:
            return await function(deps, **arguments)
        except AgendaRefused as refusal:
            what = f"why-{refusal.reason}"
            raise ToolFailed(refusal.text_in("en"), what, **refusal.fields) from refusal

    return describe_outcome


async def look_at_calendar(
    deps: ToolDeps, who: list[str] | None = None, when: str = "today"
) -> ToolOutcome:
    """When people are free or busy in their Feishu calendar (谁有空、日程); of the person who asks
    also what they have, in the private chat.

    Args:
        who: "me" (also when left out), or names of colleagues.
        when: A day or a week, as the person says it (“tomorrow”, “this week”), or 2026-11-27.
    """
    agenda = _agenda(deps)
    people = await _attendees_meant(deps, agenda, who or ["me"])
    if len(people) > _MOST_LOOKED_AT:
        raise AgendaRefused("too_many", most=_MOST_LOOKED_AT)
    now = await agenda.now()
    asked_at = deps.prompt.asked_at.astimezone(now.tzinfo)
    days = parse_days(when, asked_at.date())
    span = whole_days(*days, await agenda.zone())
    times = [await _times(agenda, one, span) for one in people]
    return agenda_outcome(times, days, now, is_alone=agenda.is_alone)


async def list_due_tasks(deps: ToolDeps, when: str = "this week") -> ToolOutcome:
    """The Feishu tasks of the person who asks that are due (到期的任务), overdue ones too.

    Args:
        when: Until when: “today”, “this week”, or a day.
    """
    agenda = _agenda(deps)
    tasks = await agenda.open_tasks()
    zone = await agenda.clock_zone()
    now, asked_at = deps.prompt.now.astimezone(zone), deps.prompt.asked_at.astimezone(zone)
    return tasks_outcome(tasks, _until(when, asked_at.date()), now, is_alone=agenda.is_alone)


async def book_meeting(
    deps: ToolDeps, title: str, at: str, with_whom: list[str] | None = None, minutes: int = 60
) -> ToolOutcome:
    """Offer to book a meeting in the Feishu calendar of the person who asks (约会议); they press a
    button to book it. Where they say a day alone, the first time when all are free is offered.

    Args:
        title: What to call it.
        at: The day, or day and time, as they say it (“Thursday”, “Thursday at 3 pm”), or
            2026-12-03T15:00.
        with_whom: Names of colleagues to invite, without the person who asks.
        minutes: How long.
    """
    agenda = _agenda(deps)
    meeting_title = title_of(title)
    others = other_people(await _attendees_meant(deps, agenda, with_whom or []), agenda.asker)
    # what is unclear is said before anything is asked for; the zone may change with the permission
    parse_time(at, deps.prompt.asked_at.astimezone(await agenda.clock_zone()))
    await agenda.may(READ_CALENDAR, WRITE_CALENDAR)
    now = await agenda.now()
    meeting_time = parse_time(at, deps.prompt.asked_at.astimezone(now.tzinfo))
    span, busy = await _place(agenda, meeting_time, length_s(minutes), others, now)
    plan = MeetingPlan(meeting_title, span.start_s, span.end_s, str(await agenda.zone()), others)
    language = deps.prompt.reply_language
    return propose_action(
        BOOK,
        plan.row(),
        deps,
        text=wording.meeting_offer(plan, busy, language, now),
        summary=wording.meeting_in_one_line(plan, language, now),
    )


async def make_task(deps: ToolDeps, title: str, for_whom: str = "me", due: str = "") -> ToolOutcome:
    """Offer to make a Feishu task (建任务) as the person who asks; they press a button to make it.

    Args:
        title: What is to be done.
        for_whom: "me", or the name of a colleague.
        due: Until when, as they say it (“Friday”), or 2026-12-04; "" without an end.
    """
    agenda = _agenda(deps)
    zone = await agenda.clock_zone()
    now = deps.prompt.now.astimezone(zone)
    (assignee,) = await _attendees_meant(deps, agenda, [for_whom or "me"])
    due_s, is_all_day = task_due(parse_end(due, deps.prompt.asked_at.astimezone(zone)), zone)
    plan = TaskPlan(title_of(title), assignee, due_s, is_all_day, str(zone))
    language = deps.prompt.reply_language
    if plan.is_over(now):
        raise AgendaRefused("past", at=wording.due_time(plan, "en", now))
    await agenda.may(WRITE_TASKS)
    return propose_action(
        MAKE_TASK,
        plan.row(),
        deps,
        text=wording.task_offer(plan, language, now),
        summary=wording.task_in_one_line(plan, language, now),
    )


async def _place(
    agenda: TurnAgenda,
    meeting_time: ParsedTime,
    length: int,
    others: Sequence[Attendee],
    now: datetime,
) -> tuple[BusySpan, list[str]]:
    """When it is to be, and who is busy then. Raises `AgendaRefused`."""
    zone, now_s = await agenda.zone(), int(now.timestamp())
    if meeting_time.day < now.date():
        raise AgendaRefused("past", at=f"{meeting_time.day}")
    if meeting_time.at is not None:
        start_s = moment_s(meeting_time.at.date(), meeting_time.at.time(), zone)
        if start_s <= now_s:
            raise AgendaRefused("past", at=f"{meeting_time.at:%Y-%m-%d %H:%M}")
        span = BusySpan(start_s, start_s + length)
        return span, await busy_people(agenda, others, span)
    window = working_hours(meeting_time.day, zone, meeting_time.part)
    everybody = [Attendee(agenda.asker, ""), *others]
    busy_spans = [span for one in everybody for span in await agenda.busy(one, window)]
    free_span = first_free(window, busy_spans, length, now_s)
    if free_span is None:
        raise AgendaRefused("no_room", day=f"{meeting_time.day}", minutes=length // 60)
    return free_span, []


async def busy_people(agenda: TurnAgenda, people: Sequence[Attendee], span: BusySpan) -> list[str]:
    """Returns the names of those who are busy then, as far as all who read along may know. Raises
    `AgendaRefused`, for those who have left too."""
    return [one.name for one in people if await _is_busy(agenda, one, span)]


async def _is_busy(agenda: TurnAgenda, person: Attendee, span: BusySpan) -> bool:
    try:
        return overlaps(span, await agenda.busy(person, span))
    except AgendaRefused as refusal:
        if refusal.reason != "private_calendar":
            raise
        return False


async def _times(agenda: TurnAgenda, person: Attendee, span: BusySpan) -> PersonAgenda:
    if person.open_id == agenda.asker:
        events = await agenda.own_events(span)
        if events is not None:
            busy = times_of_events(events, await agenda.zone())
            return PersonAgenda(person.name, True, busy, events)
    return PersonAgenda(
        person.name, person.open_id == agenda.asker, await agenda.busy(person, span)
    )


async def _attendees_meant(
    deps: ToolDeps, agenda: TurnAgenda, names: Sequence[str]
) -> list[Attendee]:
    members = () if all(map(means_asker, names)) else await agenda.members()
    return named_attendees(
        names, known_people(members, deps.prompt.people, agenda.asker), agenda.asker
    )


def _until(when: str, today: date) -> tuple[date, date]:
    return today, parse_days(when, today)[1]


def _agenda(deps: ToolDeps) -> TurnAgenda:
    agenda: TurnAgenda | None = deps.opened_sources.get("calendar")
    if agenda is None:
        raise AgendaRefused("not_set_up")
    return agenda
