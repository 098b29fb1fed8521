"""Calendars and tasks of the simulated tenant: what somebody has, and when they are busy.

Sources: open.feishu.cn, calendar-v4 and task-v2.
"""

import hashlib
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sandbox.errors import ApiError
from sandbox.world.entities import USER, SandboxEvent, SandboxPerson, SandboxTask, new_id
from sandbox.world.state import World

OF_CALENDAR = "@group.calendar.feishu.cn"
SAME_TOKEN_MS = 5 * 60 * 1000  # how long a client_token stands for the task that it made


def calendar_of(open_id: str) -> str:
    """The id of somebody's primary calendar."""
    return f"feishu.cn_{hashlib.sha256(open_id.encode()).hexdigest()[:22]}{OF_CALENDAR}"


# Feishu's `permissions` of a calendar.
CALENDARS = ("private", "show_only_free_busy", "public")


class Agendas:
    """Events and tasks. Not thread-safe; the world's lock guards it."""

    def __init__(self, world: World) -> None:
        self._world = world

    def colleague(self, open_id: str) -> SandboxPerson:
        """Somebody who works in the app's tenant. Raises ApiError for everybody else."""
        person = self._world.people.get(open_id)
        home = self._world.config.tenant_key
        at_home = person and person.kind == USER and self._world.tenant_of(person) == home
        if person is None or not at_home or person.resigned:
            raise ApiError(195100, status=404)
        return person

    def own_calendar(self, calendar_id: str, caller: str) -> None:
        """Raises ApiError unless it is the caller's own: others show free or busy at most."""
        if not calendar_id.endswith(OF_CALENDAR):
            raise ApiError(191001)
        if calendar_id == calendar_of(caller):
            return
        known = map(calendar_of, self._world.people)
        raise ApiError(191002, status=403) if calendar_id in known else ApiError(191000, status=404)

    def events(self, open_id: str, start_s: int, end_s: int) -> list[SandboxEvent]:
        """What stands in somebody's calendar between two moments, in order."""
        found = [
            one
            for one in self._world.events.values()
            if not one.deleted
            and open_id in (one.owner, *one.attendees)
            and one.start_s < end_s
            and one.end_s > start_s
        ]
        return sorted(found, key=lambda one: (one.start_s, one.event_id))

    def make_event(self, event: SandboxEvent) -> SandboxEvent:
        """A new event, or the one that the owner made with the same key before."""
        for known in self._world.events.values():
            if event.key and (known.key, known.owner) == (event.key, event.owner):
                return known
        made = replace(event, event_id=f"{new_id('', 32)}_0", create_ms=self._world.now_ms())
        self._world.put(made)
        return made

    def event(self, event_id: str, organizer: str) -> SandboxEvent:
        """An event of the organizer that is still there. Raises ApiError."""
        if not event_id.endswith("_0"):
            raise ApiError(193000)
        event = self._world.events.get(event_id)
        if event is None:
            raise ApiError(193001, status=404)
        if event.deleted:
            raise ApiError(193003, status=403)
        if event.owner != organizer:
            raise ApiError(193002, status=403)
        return event

    def change_event(self, event: SandboxEvent, **changes: Any) -> SandboxEvent:
        """The event with `changes`."""
        changed = replace(event, **changes)
        self._world.put(changed)
        return changed

    def make_task(self, task: SandboxTask) -> SandboxTask:
        """A new task, or the one that the same person made with the same token just now."""
        now = self._world.now_ms()
        for known in self._world.tasks.values():
            same = (known.client_token, known.creator) == (task.client_token, task.creator)
            if task.client_token and same and now - known.create_ms < SAME_TOKEN_MS:
                return known
        made = replace(task, guid=_guid(), create_ms=now)
        self._world.put(made)
        return made

    def tasks_of(self, open_id: str) -> list[SandboxTask]:
        """Those that somebody is responsible for."""
        return [
            one
            for one in self._world.tasks.values()
            if not one.deleted and open_id in assignees(one)
        ]

    def delete_task(self, guid: str, caller: str) -> None:
        """Raises ApiError."""
        task = self._world.tasks.get(guid)
        if task is None or task.deleted:
            raise ApiError(1470404, status=404)
        if caller not in (task.creator, *assignees(task)):
            raise ApiError(1470403, status=403)
        self._world.put(replace(task, deleted=True))


def assignees(task: SandboxTask) -> list[str]:
    """The open ids of those who are responsible."""
    return [one["id"] for one in task.members if one["role"] == "assignee"]


def _time_shape(event: SandboxEvent, seconds: int) -> dict[str, str]:
    """Feishu's time_info of a moment, or of the day that holds it."""
    if event.all_day:
        return {"date": datetime.fromtimestamp(seconds, UTC).date().isoformat()}
    return {"timestamp": str(seconds), "timezone": event.zone}


def event_shape(event: SandboxEvent) -> dict[str, Any]:
    """An event as its owner reads it."""
    return {
        "event_id": event.event_id,
        "organizer_calendar_id": calendar_of(event.owner),
        "summary": event.summary,
        "description": event.description,
        "start_time": _time_shape(event, event.start_s),
        "end_time": _time_shape(event, event.end_s - event.all_day),
        "visibility": "default",
        "attendee_ability": "none",
        "free_busy_status": "free" if event.free else "busy",
        "location": {"name": event.location} if event.location else {},
        "color": -1,
        "status": "cancelled" if event.deleted else "confirmed",
        "is_exception": False,
        "recurring_event_id": "",
        "create_time": str(event.create_ms // 1000),
        "app_link": f"https://applink.feishu.cn/client/calendar/event/detail?key={event.event_id}",
    } | event.more


def task_shape(task: SandboxTask) -> dict[str, Any]:
    """A task as its members read it."""
    due = {"timestamp": str(task.due_ms), "is_all_day": task.all_day}
    return (
        {
            "guid": task.guid,
            "summary": task.summary,
            "description": task.description,
            "creator": {"id": task.creator, "type": "user", "role": "creator"},
            "members": list(task.members),
            "completed_at": str(task.completed_ms),
            "status": "done" if task.completed_ms else "todo",
            "created_at": str(task.create_ms),
            "updated_at": str(task.create_ms),
            "url": f"https://applink.feishu.cn/client/todo/detail?guid={task.guid}",
            "mode": 2,
            "source": 7,
        }
        | ({"due": due} if task.due_ms else {})
        | task.more
    )


def midnight_ms(due_ms: int) -> int:
    """Of a task that is due on a day only the date is kept."""
    day = datetime.fromtimestamp(due_ms / 1000, UTC).replace(
        hour=0, minute=0, second=0, microsecond=0
    )
    return int(day.timestamp() * 1000)


def _guid() -> str:
    digits = new_id("", 32)
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
