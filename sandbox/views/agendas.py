"""REST views of calendars and tasks, each as the person whose token it is (open.feishu.cn,
calendar-v4 and task-v2). The app's own calendar and tasks are not played."""

import zoneinfo
from datetime import UTC, datetime
from typing import Any

from flask import g, request

from sandbox.errors import ApiError, not_played
from sandbox.http import current_platform, json_body
from sandbox.views.documents import page_bounds, page_shape
from sandbox.world.agendas import (
    Agendas,
    calendar_of,
    event_shape,
    midnight_ms,
    task_shape,
)
from sandbox.world.entities import SandboxEvent, SandboxPerson, SandboxTask

LONGEST_VIEW_S = 40 * 86_400
LONGEST_FREEBUSY_S = 90 * 86_400
LONGEST_SUMMARY = 1000
LONGEST_DESCRIPTION = 40_960
LONGEST_TASK = 3000
MOST_MEMBERS = 50
MOST_CALENDARS = 10
MOST_TASKS_PER_PAGE = 100
_DAY_S = 86_400
_INVALID = 190002
# Stored and given back as they are; they change nothing else here.
_KEPT_OF_EVENTS = ("visibility", "attendee_ability", "color", "reminders", "vchat")
_KEPT_OF_TASKS = ("extra", "mode", "is_milestone", "origin")
_NOT_PLAYED_OF_EVENTS = ("recurrence", "schemas", "attachments", "event_check_in")
_NOT_PLAYED_OF_TASKS = (
    "completed_at",
    "repeat_rule",
    "custom_complete",
    "tasklists",
    "start",
    "reminders",
    "custom_fields",
)
_ZONES = zoneinfo.available_timezones()


def primary_calendar() -> dict[str, Any]:
    """POST /calendar/v4/calendars/primary"""
    agendas, caller = _agendas()
    person = agendas.colleague(caller)
    return {"calendars": [_primary(person, caller)]}


def primary_calendars() -> dict[str, Any]:
    """POST /calendar/v4/calendars/primarys"""
    agendas, caller = _agendas()
    user_ids = json_body().get("user_ids")
    if not isinstance(user_ids, list) or not 0 < len(user_ids) <= MOST_CALENDARS:
        raise ApiError(_INVALID)
    people = [agendas.colleague(str(one)) for one in user_ids]
    return {"calendars": [_primary(one, caller) for one in people]}


def _primary(person: SandboxPerson, caller: str) -> dict[str, Any]:
    calendar = {
        "calendar_id": calendar_of(person.open_id),
        "summary": person.name,
        "description": "",
        "permissions": person.calendar,
        "color": -1,
        "type": "primary",
        "summary_alias": "",
        "is_deleted": False,
        "is_third_party": False,
        "role": "owner" if person.open_id == caller else "free_busy_reader",
    }
    return {"calendar": calendar, "user_id": person.open_id}


def free_busy() -> dict[str, Any]:
    """POST /calendar/v4/freebusy/list"""
    agendas, _ = _agendas()
    body = json_body()
    start, end = _moment(body.get("time_min")), _moment(body.get("time_max"))
    user_id = body.get("user_id")
    if not isinstance(user_id, str) or not user_id or end <= start:
        raise ApiError(_INVALID)
    if end - start > LONGEST_FREEBUSY_S:
        raise ApiError(190014)
    agendas.colleague(user_id)
    found = agendas.events(user_id, start, end)
    only_busy = body.get("only_busy", True)
    times = [
        {"start_time": _rfc3339(one.start_s), "end_time": _rfc3339(one.end_s)}
        for one in found
        if not (one.free and only_busy)
    ]
    return {"freebusy_list": times}


def instance_view(calendar_id: str) -> dict[str, Any]:
    """GET /calendar/v4/calendars/:calendar_id/events/instance_view"""
    agendas, caller = _agendas()
    start, end = _seconds(request.args.get("start_time")), _seconds(request.args.get("end_time"))
    if end - start >= LONGEST_VIEW_S:
        raise ApiError(193103)
    agendas.own_calendar(calendar_id, caller)
    shapes = [event_shape(one) for one in agendas.events(caller, start, end)]
    unsaid = ("create_time",)
    items = [{k: v for k, v in one.items() if k not in unsaid} for one in shapes]
    return {"items": items}


def create_event(calendar_id: str) -> dict[str, Any]:
    """POST /calendar/v4/calendars/:calendar_id/events"""
    agendas, caller = _agendas()
    body, key = json_body(), request.args.get("idempotency_key", "")
    summary = body.get("summary", "")
    if key and not 32 <= len(key) <= 128:
        raise ApiError(_INVALID)
    if not isinstance(summary, str) or len(summary) > LONGEST_SUMMARY:
        raise ApiError(_INVALID)
    if not _is_text(body.get("description", ""), LONGEST_DESCRIPTION):
        raise ApiError(_INVALID)
    (start, zone), (end, _) = _time_info(body, "start_time"), _time_info(body, "end_time")
    all_day = [isinstance(body[name].get("date"), str) for name in ("start_time", "end_time")]
    if end < start or any(all_day) != all(all_day):
        raise ApiError(_INVALID)
    _refuse(body, _NOT_PLAYED_OF_EVENTS)
    location = body.get("location") or {}
    event = SandboxEvent(
        "",
        caller,
        summary,
        start,
        end + _DAY_S * all(all_day),
        zone,
        location=str(location.get("name", "")),
        description=body.get("description", ""),
        free=body.get("free_busy_status", "busy") == "free",
        key=key,
        all_day=all(all_day),
        more={name: body[name] for name in _KEPT_OF_EVENTS if name in body},
    )
    agendas.own_calendar(calendar_id, caller)
    made = agendas.make_event(event)
    return {"event": event_shape(made)}


def add_attendees(calendar_id: str, event_id: str) -> dict[str, Any]:
    """POST /calendar/v4/calendars/:calendar_id/events/:event_id/attendees"""
    agendas, caller = _agendas()
    wanted = json_body().get("attendees", [])
    if any(one.get("type") != "user" for one in wanted):
        raise ApiError(194004)
    agendas.own_calendar(calendar_id, caller)
    event = agendas.event(event_id, caller)
    new = [agendas.colleague(str(one.get("user_id"))).open_id for one in wanted]
    everybody = tuple(dict.fromkeys((*event.attendees, *new)))
    changed = agendas.change_event(event, attendees=everybody)
    shapes = [_attendee(one) for one in changed.attendees]
    return {"attendees": shapes}


def delete_event(calendar_id: str, event_id: str) -> dict[str, Any]:
    """DELETE /calendar/v4/calendars/:calendar_id/events/:event_id"""
    agendas, caller = _agendas()
    if request.args.get("need_notification", "true") not in ("true", "false"):
        raise ApiError(_INVALID)
    agendas.own_calendar(calendar_id, caller)
    agendas.change_event(agendas.event(event_id, caller), deleted=True)
    return {}


def create_task() -> dict[str, Any]:
    """POST /task/v2/tasks"""
    agendas, caller = _agendas()
    body = json_body()
    summary, token = body.get("summary"), body.get("client_token", "")
    members, due = body.get("members", []), body.get("due") or {}
    if not isinstance(summary, str) or not summary or len(summary) > LONGEST_TASK:
        raise ApiError(1470400, "Invalid Param 'summary'")
    if token and not 10 <= len(token) <= 100:
        raise ApiError(1470400, "Invalid Param 'client_token'")
    if len(members) > MOST_MEMBERS or any(
        one.get("role") not in ("assignee", "follower") for one in members
    ):
        raise ApiError(1470400, "Invalid Param 'members'")
    if not _is_text(body.get("description", ""), LONGEST_TASK):
        raise ApiError(1470400, "Invalid Param 'description'")
    _refuse(body, _NOT_PLAYED_OF_TASKS)
    due_ms = _milliseconds(due["timestamp"]) if "timestamp" in due else 0
    all_day = bool(due.get("is_all_day"))
    kept = tuple({"id": one.get("id"), "type": "user", "role": one["role"]} for one in members)
    people = current_platform().world.people
    if any(one["id"] not in people or people[one["id"]].resigned for one in kept):
        raise ApiError(1470500, status=500)
    made = agendas.make_task(
        SandboxTask(
            "",
            summary,
            caller,
            kept,
            midnight_ms(due_ms) if all_day else due_ms // 1000 * 1000,
            all_day,
            client_token=token,
            description=body.get("description", ""),
            more={name: body[name] for name in _KEPT_OF_TASKS if name in body},
        )
    )
    return {"task": task_shape(made)}


def list_tasks() -> dict[str, Any]:
    """GET /task/v2/tasks"""
    agendas, caller = _agendas()
    query = request.args
    size, completed = query.get("page_size", "50"), query.get("completed")
    if not (size.isdigit() and 1 <= int(size) <= MOST_TASKS_PER_PAGE):
        raise ApiError(1470400, "Invalid Param 'page_size'")
    if query.get("type", "my_tasks") != "my_tasks" or completed not in (None, "true", "false"):
        raise ApiError(1470400)
    found = agendas.tasks_of(caller)
    if completed is not None:
        found = [one for one in found if bool(one.completed_ms) == (completed == "true")]
    start, end = page_bounds(query.get("page_token", ""), int(size), len(found), _bad_page())
    items = [task_shape(one) for one in found[start:end]]
    return page_shape(items, end, len(found))


def delete_task(task_guid: str) -> dict[str, Any]:
    """DELETE /task/v2/tasks/:task_guid"""
    agendas, caller = _agendas()
    agendas.delete_task(task_guid, caller)
    return {}


def _agendas() -> tuple[Agendas, str]:
    return current_platform().agendas, str(g.user.open_id)


def _refuse(body: dict[str, Any], names: tuple[str, ...]) -> None:
    for name in names:
        if body.get(name) not in (None, "", "0", []):
            raise not_played(name)


def _is_text(value: object, longest: int) -> bool:
    return isinstance(value, str) and len(value) <= longest


def _bad_page() -> ApiError:
    return ApiError(1470400, "Invalid Param 'page_token'")


def _attendee(open_id: str) -> dict[str, Any]:
    person = current_platform().world.people[open_id]
    return {
        "type": "user",
        "attendee_id": f"user_{open_id[3:]}",
        "rsvp_status": "needs_action",
        "is_optional": False,
        "is_organizer": False,
        "is_external": False,
        "display_name": person.name,
        "user_id": open_id,
    }


def _time_info(body: dict[str, Any], name: str) -> tuple[int, str]:
    """Seconds since the epoch, and the zone; of a whole day its midnight in UTC."""
    info = body.get(name)
    if not isinstance(info, dict):
        raise ApiError(_INVALID)
    if info.get("date"):
        if info.get("timestamp"):
            raise ApiError(_INVALID)
        return _moment(f"{info['date']}T00:00:00+00:00"), "UTC"
    zone = info.get("timezone", "Asia/Shanghai")
    if zone not in _ZONES:
        raise ApiError(_INVALID)
    return _seconds(info.get("timestamp")), str(zone)


def _seconds(value: object) -> int:
    if not isinstance(value, str) or not value.isdigit():
        raise ApiError(_INVALID)
    return int(value)


def _milliseconds(value: object) -> int:
    if not isinstance(value, str) or not value.isdigit():
        raise ApiError(1470400, "Invalid Param 'due'")
    return int(value)


def _moment(value: object) -> int:
    """Seconds since the epoch of an RFC 3339 date-time with its offset."""
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        raise ApiError(_INVALID) from None
    if moment.tzinfo is None:
        raise ApiError(_INVALID)
    return int(moment.timestamp())


def _rfc3339(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
