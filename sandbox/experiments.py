"""The part of the control interface for experiments: faults, recorded calls, who is where."""

from dataclasses import asdict

from flask import Response, request

from sandbox.control_body import control_body, count_of, number_asked, number_of, text_of
from sandbox.faults import PreparedFault
from sandbox.http import current_platform, json_response
from sandbox.past.making import PastRequest, make_past
from sandbox.world.actors import ControlRefused
from sandbox.world.switches import listed, turn
from sandbox.world.wire import chat_view, person_view


def add_fault() -> Response:
    """`{path_prefix, path_suffix, method, status, code, headers, body, delay_s, times, drop}`

    `times` defaults to 1; 0 or null is for ever.
    """
    body = control_body()
    times = body.get("times", 1)
    fault = PreparedFault(
        path_prefix=text_of(body, "path_prefix"),
        path_suffix=text_of(body, "path_suffix", ""),
        method=text_of(body, "method", "").upper(),
        status=int(body.get("status", 400 if body.get("code") else 200)),
        code=body.get("code"),
        headers=dict(body.get("headers", {})),
        body=body.get("body"),
        delay_s=float(body.get("delay_s", 0)),
        left=int(times) if times else None,
        drop=bool(body.get("drop")),
    )
    current_platform().switchboard.add(fault)
    return json_response({})


def clear_faults() -> Response:
    """No more trouble."""
    current_platform().switchboard.clear()
    return json_response({})


def calls() -> Response:
    """Calls of the app after number `since`; `path_prefix` narrows."""
    since, prefix = number_asked("since", 0), request.args.get("path_prefix", "")
    every = list(current_platform().switchboard.calls)
    found = [one for one in every if one.number > since and one.path.startswith(prefix)]
    return json_response({"items": [one.view() for one in found]})


def forget_calls() -> Response:
    """Empty the record of calls."""
    current_platform().switchboard.forget_calls()
    return json_response({})


def join() -> Response:
    """`{chat_id, open_id, silently}`; the bot's own id: the bot is added; silently: without an
    event."""
    return _membership(member=True)


def leave() -> Response:
    """`{chat_id, open_id, silently}`; the bot's own id: the bot is removed."""
    return _membership(member=False)


def dissolve() -> Response:
    """`{chat_id}`"""
    chat = current_platform().groups.dissolve(text_of(control_body(), "chat_id"))
    return json_response(chat_view(chat))


def withdraw() -> Response:
    """`{chat_id, open_id}`; the invitation of somebody is taken back."""
    body = control_body()
    chat = current_platform().groups.withdraw(text_of(body, "chat_id"), text_of(body, "open_id"))
    return json_response(chat_view(chat))


def rename() -> Response:
    """`{chat_id, name}`"""
    body = control_body()
    chat = current_platform().groups.rename(text_of(body, "chat_id"), text_of(body, "name"))
    return json_response(chat_view(chat))


def add_person() -> Response:
    """`{name, en_name, kind: user | bot, tenant_key}`; of another tenant: external."""
    body = control_body()
    person = current_platform().actors.add_person(
        text_of(body, "name"),
        text_of(body, "kind", "user"),
        text_of(body, "en_name", ""),
        text_of(body, "tenant_key", ""),
    )
    return json_response(person_view(person))


def add_chat() -> Response:
    """`{name, members: [open_id], with_bot, topics, group_message_type, silently}`; silently:
    without an event."""
    body = control_body()
    members = [str(one) for one in body.get("members", [])]
    with_bot, topics = bool(body.get("with_bot", True)), bool(body.get("topics"))
    chat = current_platform().groups.add(
        text_of(body, "name"),
        members,
        with_bot=with_bot,
        topics=topics,
        form=text_of(body, "group_message_type", "chat"),
        silently=bool(body.get("silently")),
    )
    return json_response(chat_view(chat))


def add_past() -> Response:
    """`{seed, messages, name, with_bot, ends_ms}`; a group with two years of talk, 20,000 messages
    unless said, which ends now; its bot joins as the last, and the app hears of it.

    → the chat, and `messages`.
    """
    body, platform = control_body(), current_platform()
    preset = PastRequest()
    asked = PastRequest(
        seed=number_of(body, "seed", len(platform.world.chats)),
        messages=number_of(body, "messages", preset.messages),
        name=text_of(body, "name", preset.name),
        ends_ms=number_of(body, "ends_ms", platform.world.now_ms()),
    )
    try:
        past = make_past(asked)
    except ValueError as exc:
        raise ControlRefused(str(exc)) from None
    chat = platform.groups.take_in(past.chat, (*past.people, *past.resources, *past.messages))
    if body.get("with_bot", True):
        bot = platform.world.bot.open_id
        chat = platform.groups.set_membership(chat.chat_id, bot, member=True)
    return json_response(chat_view(chat) | {"messages": len(past.messages)})


def enter() -> Response:
    """`{as}`; somebody opens their chat with the bot."""
    return json_response(chat_view(current_platform().groups.enter(text_of(control_body(), "as"))))


def press_menu() -> Response:
    """`{as, event_key, times, new_event_ids}`; somebody presses an item of the bot's menu, once:
    the app is told so often."""
    body = control_body()
    current_platform().groups.press_menu(
        text_of(body, "as"),
        text_of(body, "event_key"),
        count_of(body, "times"),
        new_event_ids=bool(body.get("new_event_ids")),
    )
    return json_response({})


def tell_again() -> Response:
    """`{chat_id, event_type, times, new_event_id}`; an event about a chat is delivered again."""
    body = control_body()
    current_platform().groups.tell_again(
        text_of(body, "chat_id"),
        text_of(body, "event_type"),
        count_of(body, "times"),
        new_event_id=bool(body.get("new_event_id")),
    )
    return json_response({})


def switches() -> Response:
    """`{scopes: [{name, en, zh, on}], platform: [...]}`"""
    world = current_platform().world
    with world.lock:
        return json_response(listed(world.switches, world.console.granted))


def switch() -> Response:
    """Any names of `GET /switches`, true or false."""
    body, world = control_body(), current_platform().world
    with world.lock:
        try:
            turn(world.switches, world.console.granted, body)
        except ValueError as exc:
            raise ControlRefused(str(exc)) from None
    return switches()


def verify() -> Response:
    """Asks the webhook with a challenge: `{status, latency_ms, error}`; without error it passed."""
    return json_response(asdict(current_platform().pusher.verify()))


def cut_connections() -> Response:
    """Every long connection ends without a word; the app has to connect again."""
    return json_response({"cut": current_platform().connections.cut()})


def _membership(*, member: bool) -> Response:
    body, platform = control_body(), current_platform()
    chat = platform.groups.set_membership(
        text_of(body, "chat_id"),
        text_of(body, "open_id"),
        member=member,
        silently=bool(body.get("silently")),
    )
    return json_response(chat_view(chat))
