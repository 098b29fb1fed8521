"""A pressed button, or a reaction, as a message to the bot, by whoever it is of."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import structlog

from bot.feishu.content import Mention
from bot.feishu.errors import FeishuFailure
from bot.feishu.events import CardAction, MessageEvent
from bot.mentions import Person
from bot.services import Services
from memory.kept.buttons import Click, Press
from memory.scope import MAIN_ROOT

log = structlog.get_logger()

_LOOK_UP_S = 2.0


def turn_id(button_id: str) -> str:
    """The id of the turn a button leads to: however often it is pressed, there is one."""
    return f"click:{button_id}"


def turn_of(click: Click, press: Press) -> str:
    """The id of the turn a press leads to; of a button that can be pressed again, each its own."""
    once = turn_id(click.button_id)
    return f"{once}~{click.event_id}" if press.payload.get("again") else once


@dataclass(frozen=True, slots=True)
class Place:
    """Where a click is said: a conversation (`root` "" is the main one), and the message that the
    answer hangs under, "" in a person's own place."""

    chat_id: str
    chat_type: str
    root: str
    message_id: str = ""


def under_card(services: Services, click: Click, press: Press) -> Place:
    """Under the card that was clicked."""
    return in_conversation(
        services, click.chat_id, press.root_id, press.chat_type, click.message_id
    )


def in_conversation(
    services: Services, chat_id: str, root: str, chat_type: str, card_id: str
) -> Place:
    """Under a card of the conversation of that root."""
    root = "" if root == MAIN_ROOT else root
    if not root and chat_type == "group" and services.settings.reply_in_thread:
        root = card_id  # threads were switched on after the card was sent
    return Place(chat_id, chat_type, root, card_id)


def asked_there(press: Press) -> Place:
    """In the group, under the question that was answered privately."""
    where = press.payload
    root = "" if where["root_id"] == MAIN_ROOT else where["root_id"]
    return Place(where["chat_id"], "group", root, where["turn_id"])


@dataclass(frozen=True, slots=True)
class Saying:
    """Who says something without writing it, by which event, and when (ms since epoch)."""

    open_id: str
    tenant_key: str
    event_id: str
    at_ms: int


async def as_message(
    services: Services,
    action: CardAction,
    click: Click,
    place: Place,
    text: str,
    *,
    turn: str = "",
) -> MessageEvent:
    """The click as a message to the bot by whoever clicked; `turn` is its id, where it is not the
    button's."""
    saying = Saying(click.operator_id, click.tenant_key, click.event_id, action.create_time_ms)
    return await as_said(services, saying, turn or turn_id(click.button_id), place, text)


async def as_said(
    services: Services, saying: Saying, turn: str, place: Place, text: str, *, about: str = ""
) -> MessageEvent:
    """`text` as a message to the bot, of the id `turn`; `about`: the open_id of whom it is about,
    if not about who says it."""
    bot = await services.own_person.look_up()
    in_thread = bool(place.root and place.message_id)
    return MessageEvent(
        event_id=saying.event_id,
        message_id=turn,
        root_id=place.root,
        parent_id="",
        thread_id=await _thread_of(services, place.message_id) if in_thread else "",
        chat_id=place.chat_id,
        chat_type=place.chat_type,
        message_type="text",
        sender_open_id=saying.open_id,
        sender_type="user",
        tenant_key=saying.tenant_key,
        create_time_ms=saying.at_ms,
        mentions=(_mention(bot, saying.tenant_key), *_subject(services, saying, about)),
        mentions_all=False,
        text=text,
        template=text,
        attachments=(),
    )


def _mention(bot: Person, tenant_key: str) -> Mention:
    """The click is meant for the bot; no key, for it stands nowhere in the text."""
    return Mention(key="", open_id=bot.open_id, name=bot.name, is_bot=True, tenant_key=tenant_key)


def _subject(services: Services, saying: Saying, about: str) -> tuple[Mention, ...]:
    if about in ("", saying.open_id):
        return ()
    name = services.people.of(saying.tenant_key).name(about)
    return (Mention(key="", open_id=about, name=name, is_bot=False, tenant_key=saying.tenant_key),)


async def _thread_of(services: Services, message_id: str) -> str:
    """Feishu's id of the thread a message stands in; "" where Feishu does not say."""
    try:
        async with asyncio.timeout(_LOOK_UP_S):
            found = await services.feishu.get_message(message_id)
    except (TimeoutError, FeishuFailure) as exc:
        log.info("click.thread_unknown", error=type(exc).__name__)
        return ""
    return found[0].thread_id if found else ""
