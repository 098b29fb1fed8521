"""The part of the control interface for calendars and tasks: what people have, and make in Feishu
itself; no app hears of it."""

import zoneinfo
from dataclasses import replace
from datetime import datetime
from typing import Any

from flask import Response

from sandbox.control_body import control_body, text_of
from sandbox.http import current_platform, json_response
from sandbox.world.actors import ControlRefused
from sandbox.world.agendas import CALENDARS, assignees, event_shape, task_shape
from sandbox.world.entities import USER, SandboxEvent, SandboxTask
from sandbox.world.wire import person_view


def agendas() -> Response:
    """`{items: [{open_id, name, events, tasks}]}`, of everybody; with what was deleted."""
    platform = current_platform()
    with platform.world.lock:
        people = [one for one in platform.world.people.values() if one.kind == USER]
        return json_response({"items": [_agenda(one.open_id, one.name) for one in people]})


def add_event() -> Response:
    """`{as, summary, start, end, zone, attendees, location, free}`; start and end are local times
    (ISO 8601 without an offset) of `zone`."""
    platform, body = current_platform(), control_body()
    zone = text_of(body, "zone", platform.config.timezone)
    with platform.world.lock:
        owner = platform.actors.person(text_of(body, "as"))
        event = SandboxEvent(
            "",
            owner.open_id,
            text_of(body, "summary"),
            _seconds(text_of(body, "start"), zone),
            _seconds(text_of(body, "end"), zone),
            zone,
            tuple(map(str, body.get("attendees", []))),
            text_of(body, "location", ""),
            bool(body.get("free")),
        )
        return json_response(event_shape(platform.agendas.make_event(event)))


def add_task() -> Response:
    """`{as, summary, due, members}`; `due` is a day, or a local time of the sandbox's zone;
    without `members` it is their own."""
    platform, body = current_platform(), control_body()
    due, zone = text_of(body, "due", ""), platform.config.timezone
    with platform.world.lock:
        creator = platform.actors.person(text_of(body, "as"))
        whose = [str(one) for one in body.get("members", [creator.open_id])]
        all_day = bool(due) and "T" not in due
        task = SandboxTask(
            "",
            text_of(body, "summary"),
            creator.open_id,
            tuple({"id": one, "type": "user", "role": "assignee"} for one in whose),
            _seconds(due, "UTC" if all_day else zone) * 1000 if due else 0,
            all_day,
        )
        return json_response(task_shape(platform.agendas.make_task(task)))


def remove() -> Response:
    """`{event_id | guid}`: somebody deletes it in Feishu itself."""
    platform, body = current_platform(), control_body()
    with platform.world.lock:
        world = platform.world
        event = world.events.get(text_of(body, "event_id", ""))
        task = world.tasks.get(text_of(body, "guid", ""))
        if event is None and task is None:
            raise ControlRefused("there is no such event or task")
        if event:
            world.put(replace(event, deleted=True))
        if task:
            world.put(replace(task, deleted=True))
    return json_response({})


def resign() -> Response:
    """`{as}`: they leave the company; groups still list them until they leave those."""
    platform, body = current_platform(), control_body()
    with platform.world.lock:
        person = replace(platform.actors.person(text_of(body, "as")), resigned=True)
        platform.world.put(person)
        return json_response(person_view(person))


def share_calendar() -> Response:
    """`{as, permissions: private | show_only_free_busy | public}`"""
    platform, body = current_platform(), control_body()
    with platform.world.lock:
        permissions = text_of(body, "permissions")
        if permissions not in CALENDARS:
            raise ControlRefused(f"'permissions' must be one of {CALENDARS}")
        person = platform.actors.person(text_of(body, "as"))
        platform.world.put(replace(person, calendar=permissions))
        return json_response({"permissions": permissions})


def _agenda(open_id: str, name: str) -> dict[str, Any]:
    world = current_platform().world
    events = [one for one in world.events.values() if open_id in (one.owner, *one.attendees)]
    tasks = [one for one in world.tasks.values() if open_id in (one.creator, *assignees(one))]
    events.sort(key=lambda one: one.start_s)
    return {
        "open_id": open_id,
        "name": name,
        "events": [
            {
                **event_shape(one),
                "owner": world.people[one.owner].name,
                "attendees": _names(one.attendees),
                "deleted": one.deleted,
            }
            for one in events
        ],
        "tasks": [
            {
                **task_shape(one),
                "owner": world.people[one.creator].name,
                "assignees": _names(assignees(one)),
                "deleted": one.deleted,
            }
            for one in tasks
        ],
    }


def _names(open_ids: Any) -> list[str]:
    people = current_platform().world.people
    return [people[one].name for one in open_ids if one in people]


def _seconds(local: str, zone: str) -> int:
    try:
        moment = datetime.fromisoformat(local).replace(tzinfo=zoneinfo.ZoneInfo(zone))
    except (ValueError, zoneinfo.ZoneInfoNotFoundError):
        raise ControlRefused(
            "times are ISO 8601 without an offset, zones as IANA has them"
        ) from None
    return int(moment.timestamp())
