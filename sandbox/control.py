"""The control interface of the page and of tests: JSON under `/sandbox/api`.

POST bodies must be JSON with its content type, so that no other web page can post here unasked.
Errors: 400 with `{"error": sentence}`.
"""

import base64
import time
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import asdict
from itertools import takewhile
from typing import Any
from urllib.parse import quote

from flask import Blueprint, Response, request

from sandbox import agendas, experiments, grants, registration, shelf
from sandbox.control_body import control_body, count_of, number_asked, text_of
from sandbox.extras import Extras
from sandbox.http import current_platform, json_response
from sandbox.world.actors import ControlRefused, Speech
from sandbox.world.clicks import Clicked
from sandbox.world.entities import SandboxMessage
from sandbox.world.push import delivery_view
from sandbox.world.state import World
from sandbox.world.wire import chat_view, message_view, person_view

MAX_WAIT_S = 60.0
PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

Inspector = Callable[[str], dict[str, Any]]


def control_api(inspector: Inspector | None, extras: Callable[[], Extras]) -> Blueprint:
    """The blueprint; `inspector(chat_id)` says what the bot remembers, None if nobody knows."""
    blueprint = Blueprint("control", __name__, url_prefix="/sandbox/api")
    blueprint.before_request(_require_json)
    blueprint.register_error_handler(ControlRefused, _refuse)

    def inspect() -> Response:
        if inspector is None:
            return json_response({"error": "no bot lets itself be inspected here"}, 404)
        return json_response(inspector(request.args.get("chat_id", "")))

    def state() -> Response:
        return json_response({**_state(), **asdict(extras())})

    routes: list[tuple[str, str, Callable[..., Response]]] = [
        ("GET", "/state", state),
        ("GET", "/messages", messages),
        ("POST", "/messages", say),
        ("GET", "/messages/<message_id>", one_message),
        ("POST", "/forward", forward),
        ("POST", "/redeliver", redeliver),
        ("POST", "/edit", edit),
        ("POST", "/recall", recall),
        ("POST", "/click", click),
        ("POST", "/reactions", react),
        ("GET", "/deliveries", deliveries),
        ("POST", "/faults", experiments.add_fault),
        ("DELETE", "/faults", experiments.clear_faults),
        ("GET", "/requests", experiments.calls),
        ("DELETE", "/requests", experiments.forget_calls),
        ("POST", "/join", experiments.join),
        ("POST", "/leave", experiments.leave),
        ("POST", "/dissolve", experiments.dissolve),
        ("POST", "/withdraw", experiments.withdraw),
        ("POST", "/rename", experiments.rename),
        ("POST", "/people", experiments.add_person),
        ("POST", "/chats", experiments.add_chat),
        ("POST", "/pasts", experiments.add_past),
        ("POST", "/enter", experiments.enter),
        ("POST", "/menu", experiments.press_menu),
        ("POST", "/tell-again", experiments.tell_again),
        ("GET", "/switches", experiments.switches),
        ("POST", "/switches", experiments.switch),
        ("DELETE", "/connections", experiments.cut_connections),
        ("POST", "/verify", experiments.verify),
        ("POST", "/scan", registration.scan),
        ("GET", "/console", registration.console),
        ("POST", "/console", registration.set_console),
        ("GET", "/grants", grants.granted),
        ("GET", "/grants/request", grants.grant_request),
        ("POST", "/grants", grants.decide),
        ("POST", "/grants/revoke", grants.revoke),
        ("POST", "/user-scopes", grants.open_scopes),
        ("GET", "/documents", shelf.documents),
        ("POST", "/documents", shelf.add_document),
        ("POST", "/documents/change", shelf.change_document),
        ("POST", "/documents/comment", shelf.comment),
        ("POST", "/documents/solve", shelf.solve),
        ("GET", "/agendas", agendas.agendas),
        ("POST", "/agendas/events", agendas.add_event),
        ("POST", "/agendas/tasks", agendas.add_task),
        ("POST", "/agendas/remove", agendas.remove),
        ("POST", "/agendas/resign", agendas.resign),
        ("POST", "/agendas/calendar", agendas.share_calendar),
        ("GET", "/resources/<key>", resource),
        ("GET", "/stream", stream),
        ("GET", "/inspect", inspect),
    ]
    for method, rule, view in routes:
        blueprint.add_url_rule(rule, f"{method} {view.__name__}", view, methods=[method])
    return blueprint


def _state() -> dict[str, Any]:
    """People, chats, bot, and the numbers to follow from (`feed`, `position`)."""
    platform = current_platform()
    world = platform.world
    with world.lock:
        return {
            "bot": person_view(world.bot),
            "people": [person_view(one) for one in world.people.values()],
            "chats": [chat_view(one) for one in world.chats.values()],
            "webhook_url": platform.config.webhook_url,
            "timezone": platform.config.timezone,
            "offline_model": platform.config.offline_model,
            "feed": platform.feed.number,
            "position": len(world.messages),
        }


def messages() -> Response:
    """Messages after position `since`, oldest first.

    Query: `chat_id`, `root_id`, `sender` (open id or `bot`), `wait_s` (until there is one),
    `count` (wait until there are so many); or `newest`: the newest so many of each chat, or of
    `chat_id`, of those before position `before`.
    """
    world = current_platform().world
    if newest := number_asked("newest", 0):
        return _newest(newest, number_asked("before", 1 << 60))
    since, count = number_asked("since", 0), number_asked("count", 1)
    deadline = time.monotonic() + _wait_s()
    with world.lock:
        while True:
            newer = _newer(request.args.get("chat_id"), since)
            found = [one for one in newer if _asked_for(one)]
            left = deadline - time.monotonic()
            if len(found) >= count or left <= 0:
                break
            world.changed.wait(left)
        items = [message_view(world, one) for one in found]
        return json_response({"items": items, "position": len(world.messages)})


def _newest(count: int, before: int) -> Response:
    world, chat_id = current_platform().world, request.args.get("chat_id")
    with world.lock:
        found = [
            world.messages[message_id]
            for of_chat in ([chat_id] if chat_id else world.by_chat)
            for message_id in _last(world, of_chat, count, before)
        ]
        found.sort(key=lambda one: one.position)
        items = [message_view(world, one) for one in found]
        return json_response({"items": items, "position": len(world.messages)})


def _last(world: World, chat_id: str, count: int, before: int) -> list[str]:
    ids = world.by_chat.get(chat_id, [])
    end = bisect_left(ids, before, key=lambda one: world.messages[one].position)
    return ids[max(0, end - count) : end]


def one_message(message_id: str) -> Response:
    """One message; with `version` and `wait_s`: as soon as it is newer than that version."""
    platform = current_platform()
    version, deadline = number_asked("version", -1), time.monotonic() + _wait_s()
    with platform.world.lock:
        while True:
            message = platform.actors.message(message_id)
            left = deadline - time.monotonic()
            if message.version > version or left <= 0:
                return json_response(message_view(platform.world, message))
            platform.world.changed.wait(left)


def say() -> Response:
    """`{as, chat_id, text | content, message_type, mentions: [{open_id}], raw, reply_to, quote,
    count, new_event_ids, foreign_ids, seconds, file_base64, file_name, mime}` → `{message_id,
    position}`"""
    body = control_body()
    speech = Speech(
        speaker=text_of(body, "as"),
        chat_id=text_of(body, "chat_id"),
        text=text_of(body, "text", ""),
        msg_type=text_of(body, "message_type", "text"),
        content=text_of(body, "content", ""),
        mentions=tuple(text_of(one, "open_id") for one in body.get("mentions", [])),
        raw=bool(body.get("raw")),
        reply_to=text_of(body, "reply_to", "") or text_of(body, "root_id", ""),
        quote=bool(body.get("quote")),
        file_base64=text_of(body, "file_base64", ""),
        file_name=text_of(body, "file_name", ""),
        mime=text_of(body, "mime", "image/png"),
        count=count_of(body, "count"),
        new_event_ids=bool(body.get("new_event_ids")),
        foreign_ids=bool(body.get("foreign_ids")),
        seconds=float(body.get("seconds", 0)),
    )
    message = current_platform().actors.say(speech)
    return json_response({"message_id": message.message_id, "position": message.position})


def forward() -> Response:
    """`{as, chat_id, message_ids}` → `{message_id, position}`; several become one forward."""
    body = control_body()
    ids = body.get("message_ids")
    message = current_platform().actors.forward(
        text_of(body, "as"), text_of(body, "chat_id"), [str(one) for one in ids or []]
    )
    return json_response({"message_id": message.message_id, "position": message.position})


def redeliver() -> Response:
    """`{message_id, times, new_event_id}`"""
    body = control_body()
    current_platform().actors.redeliver(
        text_of(body, "message_id"),
        count_of(body, "times"),
        new_event_id=bool(body.get("new_event_id")),
    )
    return json_response({})


def edit() -> Response:
    """`{message_id, as, text}`; the app is not told, as in Feishu."""
    body = control_body()
    current_platform().actors.edit(
        text_of(body, "message_id"), text_of(body, "as"), text_of(body, "text")
    )
    return json_response({})


def recall() -> Response:
    """`{message_id, as}`"""
    body = control_body()
    current_platform().actors.recall(text_of(body, "message_id"), text_of(body, "as"))
    return json_response({})


def click() -> Response:
    """`{as, message_id, value | index, form?}` → `{toast, code, status, latency_ms}`"""
    body = control_body()
    index, form = body.get("index"), body.get("form")
    clicked: Clicked = current_platform().clicks.click(
        text_of(body, "as"),
        text_of(body, "message_id"),
        value=body.get("value"),
        index=index if isinstance(index, int) else None,
        form=form if isinstance(form, dict) else None,
    )
    return json_response(asdict(clicked))


def react() -> Response:
    """`{as, message_id, emoji_type}`; a second time takes it away."""
    body = control_body()
    reaction = current_platform().actors.react(
        text_of(body, "message_id"), text_of(body, "as"), text_of(body, "emoji_type")
    )
    return json_response({"reaction_id": reaction.reaction_id})


def deliveries() -> Response:
    """Pushed events and their attempts; `message_id` narrows, `wait_s` waits till all are done."""
    platform = current_platform()
    message_id, deadline = request.args.get("message_id"), time.monotonic() + _wait_s()
    with platform.world.lock:
        while True:
            every = list(platform.pusher.deliveries)
            found = [one for one in every if message_id in (None, one.message_id)]
            left = deadline - time.monotonic()
            if left <= 0 or (found and all(one.done for one in found)):
                return json_response({"items": [delivery_view(one) for one in found]})
            platform.world.changed.wait(left)


def resource(key: str) -> Response:
    """A picture to be shown, or a file to be saved: a browser opens nothing of what people sent."""
    found = current_platform().world.resources.get(key)
    if found is None:
        return json_response({"error": "there is no such picture or file"}, 404)
    shown = found.mime in PICTURES and not found.name
    kind = found.mime if shown else "application/octet-stream"
    answer = Response(base64.b64decode(found.data), content_type=kind)
    if not shown:
        name = quote(found.name or "file", safe="")
        answer.headers["Content-Disposition"] = f"attachment; filename*=UTF-8''{name}"
        answer.headers["Content-Security-Policy"] = "sandbox"
    answer.headers["X-Content-Type-Options"] = "nosniff"
    return answer


def stream() -> Response:
    """Server-Sent Events message, delivery, chat, person, after `Last-Event-ID` or `after`."""
    platform = current_platform()
    last = request.headers.get("Last-Event-ID", "")
    after = int(last) if last.isdigit() else number_asked("after", platform.feed.number)
    body = platform.feed.stream(after, platform.config.sse_life_s)
    answer = Response(body, content_type="text/event-stream; charset=utf-8")
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _newer(chat_id: str | None, since: int) -> list[SandboxMessage]:
    """What came after position `since`, oldest first. Positions count up in both lists."""
    world = current_platform().world
    if chat_id is None:
        newest_first = reversed(world.messages.values())
    else:
        newest_first = (world.messages[one] for one in reversed(world.by_chat.get(chat_id, [])))
    return [*takewhile(lambda one: one.position > since, newest_first)][::-1]


def _asked_for(message: SandboxMessage) -> bool:
    sender, root_id = request.args.get("sender"), request.args.get("root_id")
    if sender == "bot":
        sender = current_platform().world.bot.open_id
    if sender and message.sender != sender:
        return False
    return not root_id or root_id in (message.root_id, message.message_id)


def _require_json() -> Response | None:
    if request.method == "POST" and not request.is_json:
        return json_response({"error": "send JSON with Content-Type application/json"}, 415)
    return None


def _refuse(exc: ControlRefused) -> Response:
    return json_response({"error": str(exc)}, 400)


def _wait_s() -> float:
    return min(request.args.get("wait_s", 0.0, type=float), MAX_WAIT_S)
