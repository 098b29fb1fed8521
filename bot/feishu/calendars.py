"""Feishu's calendar and tasks as a person uses them: every call is made with that person's token.

Source: Feishu's API pages of calendar-v4 (calendar primary and primarys, freebusy list,
calendar-event create, delete and instance_view, calendar-event-attendee create) and task-v2 (task
create, list, delete).
Every method raises FeishuFailure. Moments are seconds since the epoch. Nothing is kept here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from bot.feishu.caller import Caller
from bot.feishu.errors import Unintelligible
from bot.feishu.fields import as_dict, as_list, as_text
from bot.feishu.models import required_text
from bot.feishu.transport import ApiRequest, FairPacer, SharedPace

# What the error tables of these pages say.
_SHOWS_TIMES = frozenset({"show_only_free_busy", "public"})
NOT_IN_TENANT = 195100  # somebody has left, or never was there
DELETED_CODES = frozenset({193001, 193003, 1470404})  # the event or task is deleted already
_CALENDARS, _TASKS = "/open-apis/calendar/v4/calendars", "/open-apis/task/v2/tasks"
_A_SECOND = 10  # of task create and delete
_TASKS_PER_PAGE = 100
_MOST_PAGES = 5


@dataclass(frozen=True, slots=True)
class BusySpan:
    """From when to when somebody is busy."""

    start_s: int
    end_s: int


@dataclass(frozen=True, slots=True)
class CalendarEvent:
    """An event of one's own calendar. `zone` as IANA names it, "" of whole days; `is_own`: it was
    made in this calendar; `is_busy`: it keeps its owner busy."""

    event_id: str
    title: str
    start_s: int
    end_s: int
    zone: str
    place: str = ""
    is_own: bool = True
    is_busy: bool = True


@dataclass(frozen=True, slots=True)
class ListedTask:
    """A task that one is responsible for; `due_s` is 0 without an end, and midnight in UTC of a
    whole day."""

    guid: str
    title: str
    due_s: int
    is_all_day: bool


class CalendarCalls:
    """The calls, each `as_user`: the access token of the person whose calendar and tasks it is."""

    def __init__(self, caller: Caller, pace: SharedPace, **seams: Any) -> None:
        self._caller = caller
        self._tasks = FairPacer("task", _A_SECOND, pace, **seams)

    async def primary_id(self, as_user: str) -> str:
        """The id of their own calendar."""
        request = ApiRequest("POST", f"{_CALENDARS}/primary", body={}, api="own calendar")
        calendars = as_list((await self._caller.call_as(request, as_user)).get("calendars"))
        return required_text(
            as_dict(as_dict(calendars[0] if calendars else {}).get("calendar")), "calendar_id"
        )

    async def busy(
        self, open_id: str, start_s: int, end_s: int, as_user: str
    ) -> tuple[BusySpan, ...]:
        """When somebody of the same tenant is busy, within at most 90 days. `NOT_IN_TENANT` for
        everybody else."""
        body = {"time_min": _rfc3339(start_s), "time_max": _rfc3339(end_s), "user_id": open_id}
        path = "/open-apis/calendar/v4/freebusy/list"
        query: dict[str, str | int] = {"user_id_type": "open_id"}
        request = ApiRequest("POST", path, query, body, api="free or busy")
        slots = as_list((await self._caller.call_as(request, as_user)).get("freebusy_list"))
        spans = map(as_dict, slots)
        return tuple(BusySpan(_read(one, "start_time"), _read(one, "end_time")) for one in spans)

    async def shows_times(self, open_id: str, as_user: str) -> bool:
        """Returns whether all colleagues may see when somebody is busy (`permissions`). False if
        Feishu does not say."""
        path, query = f"{_CALENDARS}/primarys", {"user_id_type": "open_id"}
        request = ApiRequest("POST", path, query, {"user_ids": [open_id]}, api="calendar sharing")
        calendars = as_list((await self._caller.call_as(request, as_user)).get("calendars"))
        return any(
            as_dict(one).get("user_id") == open_id
            and as_dict(as_dict(one).get("calendar")).get("permissions") in _SHOWS_TIMES
            for one in calendars
        )

    async def events(
        self, calendar_id: str, start_s: int, end_s: int, as_user: str
    ) -> tuple[CalendarEvent, ...]:
        """The events of one's own calendar, those that repeat one by one."""
        path = f"{_CALENDARS}/{_part(calendar_id)}/events/instance_view"
        query: dict[str, str | int] = {"start_time": str(start_s), "end_time": str(end_s)}
        request = ApiRequest("GET", path, query, api="events")
        items = as_list((await self._caller.call_as(request, as_user)).get("items"))
        return tuple(_event(as_dict(one), calendar_id) for one in items)

    async def create_event(
        self, calendar_id: str, key: str, event: CalendarEvent, as_user: str
    ) -> str:
        """The id of a new event; with the same `key` (32 to 128 characters) it is the same."""
        path = f"{_CALENDARS}/{_part(calendar_id)}/events"
        query: dict[str, str | int] = {"idempotency_key": key, "user_id_type": "open_id"}
        body = {
            "summary": event.title,
            "start_time": {"timestamp": str(event.start_s), "timezone": event.zone},
            "end_time": {"timestamp": str(event.end_s), "timezone": event.zone},
            "attendee_ability": "can_see_others",
        }
        request = ApiRequest("POST", path, query, body, api="create event")
        new_event = as_dict((await self._caller.call_as(request, as_user)).get("event"))
        return required_text(new_event, "event_id")

    async def invite(
        self, calendar_id: str, event_id: str, open_ids: Sequence[str], as_user: str
    ) -> None:
        """Adds people to one's own event; whoever is there already stays once."""
        path = f"{_CALENDARS}/{_part(calendar_id)}/events/{_part(event_id)}/attendees"
        people = [{"type": "user", "user_id": one} for one in open_ids]
        query: dict[str, str | int] = {"user_id_type": "open_id"}
        request = ApiRequest("POST", path, query, {"attendees": people}, api="invite")
        await self._caller.call_as(request, as_user)

    async def delete_event(self, calendar_id: str, event_id: str, as_user: str) -> None:
        """Deletes one's own event, and tells those invited."""
        path = f"{_CALENDARS}/{_part(calendar_id)}/events/{_part(event_id)}"
        request = ApiRequest("DELETE", path, {"need_notification": "true"}, api="delete event")
        await self._caller.call_as(request, as_user)

    async def create_task(
        self, token: str, title: str, due: tuple[int, bool] | None, assignee: str, as_user: str
    ) -> str:
        """The guid of a new task; within five minutes it is the same for the same `token` (10 to
        100 characters). `due`: seconds, and whether it is a whole day; then UTC's date counts."""
        body: dict[str, Any] = {
            "summary": title,
            "members": [{"id": assignee, "type": "user", "role": "assignee"}],
            "client_token": token,
        }
        if due:
            body["due"] = {"timestamp": str(due[0] * 1000), "is_all_day": due[1]}
        query: dict[str, str | int] = {"user_id_type": "open_id"}
        request = ApiRequest("POST", _TASKS, query, body, api="create task")
        task = as_dict((await self._caller.call_as(request, as_user, self._tasks)).get("task"))
        return required_text(task, "guid")

    async def open_tasks(self, as_user: str) -> tuple[ListedTask, ...]:
        """The tasks that they are responsible for and have not done, 500 at most."""
        query: dict[str, str | int] = {"completed": "false", "page_size": _TASKS_PER_PAGE}
        tasks: list[ListedTask] = []
        for _ in range(_MOST_PAGES):
            request = ApiRequest("GET", _TASKS, dict(query), api="tasks")
            data = await self._caller.call_as(request, as_user)
            tasks += [_task(as_dict(one)) for one in as_list(data.get("items"))]
            token = as_text(data.get("page_token"))
            if data.get("has_more") is not True or not token:
                break
            query["page_token"] = token
        return tuple(tasks)

    async def delete_task(self, guid: str, as_user: str) -> None:
        """Deletes a task that they made."""
        request = ApiRequest("DELETE", f"{_TASKS}/{_part(guid)}", api="delete task")
        await self._caller.call_as(request, as_user, self._tasks)


def _event(item: Mapping[str, Any], calendar_id: str) -> CalendarEvent:
    start, end = as_dict(item.get("start_time")), as_dict(item.get("end_time"))
    is_whole = not as_text(start.get("timestamp"))
    return CalendarEvent(
        as_text(item.get("event_id")),
        as_text(item.get("summary")),
        _seconds(start),
        _seconds(end),
        "" if is_whole else as_text(start.get("timezone")),
        as_text(as_dict(item.get("location")).get("name")),
        is_own=item.get("organizer_calendar_id") == calendar_id,
        is_busy=item.get("free_busy_status") != "free" and item.get("status") != "cancelled",
    )


def _task(item: Mapping[str, Any]) -> ListedTask:
    due = as_dict(item.get("due"))
    stamp = as_text(due.get("timestamp"))
    due_s = int(stamp) // 1000 if stamp.isdigit() else 0
    title = as_text(item.get("summary"))
    return ListedTask(as_text(item.get("guid")), title, due_s, due.get("is_all_day") is True)


def _seconds(info: Mapping[str, Any]) -> int:
    """Of a moment, or of the midnight in UTC that begins a whole day."""
    stamp = as_text(info.get("timestamp"))
    if stamp.isdigit():
        return int(stamp)
    return int(_moment(f"{as_text(info.get('date'))}T00:00:00+00:00").timestamp())


def _read(span: Mapping[str, Any], name: str) -> int:
    return int(_moment(as_text(span.get(name))).timestamp())


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise Unintelligible("a time of the calendar that is none") from None


def _rfc3339(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def _part(text: str) -> str:
    return quote(text, safe="")
