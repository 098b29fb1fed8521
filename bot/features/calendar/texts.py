"""What cards say of meetings and tasks: before a press, and after. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from bot.agenda.plans import MeetingPlan, TaskPlan, due_day
from bot.feishu.markup import verbatim
from bot.text.catalogues import Catalogue
from bot.text.dates import spoken
from bot.text.languages import Language, join_list

say = Catalogue(__file__).say
Shown = Callable[[str], str]


def meeting_offered(
    plan: MeetingPlan, busy: Sequence[str], language: Language, now: datetime
) -> str:
    """All that will be written, and who is busy then."""
    lines = [say("confirm-meeting", language), "", f"📅 **{verbatim(plan.title)}**"]
    lines.append(meeting_times(plan, language, now))
    if plan.attendees:
        lines.append(say("with", language, names=_names(plan, language, verbatim)))
    if busy:
        names = join_list(map(verbatim, busy), language)
        lines.append(say("busy-then", language, names=names))
    return "\n".join(lines)


def task_offered(plan: TaskPlan, language: Language, now: datetime) -> str:
    """All that will be written."""
    lines = [say("confirm-task", language), "", f"☑ **{verbatim(plan.title)}**"]
    lines.append(say("for", language, name=verbatim(plan.assignee.name)))
    if plan.due_s is not None:
        lines.append(say("due", language, when=due_time(plan, language, now)))
    return "\n".join(lines)


def meeting_in_one_line(
    plan: MeetingPlan, language: Language, now: datetime, show: Shown = str
) -> str:
    """Title, times and people; on a card `show` as `verbatim`."""
    parts = [show(plan.title), meeting_times(plan, language, now)]
    if plan.attendees:
        parts.append(say("with", language, names=_names(plan, language, show)))
    return " · ".join(parts)


def task_in_one_line(plan: TaskPlan, language: Language, now: datetime, show: Shown = str) -> str:
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


def due_on(day: datetime, language: Language, now: datetime) -> str:
    """“Fri 4 Dec”."""
    return spoken.weekday_and_day(day, language, now=now)


def _coming(at: datetime, language: Language, now: datetime) -> str:
    return spoken.coming(at, language, now=now)


def _names(plan: MeetingPlan, language: Language, show: Shown) -> str:
    return join_list((show(one.name) for one in plan.attendees), language)
