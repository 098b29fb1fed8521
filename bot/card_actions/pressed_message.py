"""What a pressed button, or a reaction, asks the bot: the request of whoever it is of."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import structlog

from bot.feishu.errors import FeishuFailure
from bot.feishu.events import CardAction
from bot.feishu.fields import Mention
from bot.listening.turn_request import TurnRequest
from bot.services import Services
from memory.models import Origin
from memory.scope import MAIN_ROOT
from memory.tables.cards import Click, PressResult

log = structlog.get_logger()

_LOOK_UP_S = 2.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a click is said: a conversation (`root` "" is the main one), and the message that the
    answer hangs under, "" for what one person alone is shown."""

    chat_id: str
    chat_type: str
    root: str
    message_id: str = ""


def card_place(services: Services, click: Click, press: PressResult) -> Place:
    """Under the card that was clicked."""
    return conversation_place(
        services, press.chat_id, press.root_id, press.chat_type, click.message_id
    )


def conversation_place(
    services: Services, chat_id: str, root: str, chat_type: str, card_id: str
) -> Place:
    """Under a card of the conversation of that root."""
    root = "" if root == MAIN_ROOT else root
    if not root and chat_type == "group" and services.settings.reply_in_thread:
        root = card_id  # threads were switched on after the card was sent
    return Place(chat_id, chat_type, root, card_id)


def private_place(press: PressResult) -> Place:
    """Where only the presser reads: the conversation of a button that nobody else sees. What
    earlier versions kept under the question's root stays there."""
    return Place(press.chat_id, "p2p", "" if press.root_id == MAIN_ROOT else press.root_id)


def question_place(press: PressResult) -> Place:
    """In the group, under the question that was answered privately."""
    where = press.payload
    root = "" if where["root_id"] == MAIN_ROOT else where["root_id"]
    return Place(where["chat_id"], "group", root, where["turn_id"])


@dataclass(frozen=True, slots=True)
class PressSource:
    """Who says something without writing it, and when (ms since epoch). `own_tenant`: as
    `TurnRequest.sender_tenant`; "" also where only the memory knows it."""

    open_id: str
    tenant_key: str
    at_ms: int
    own_tenant: str = ""


async def press_request(
    services: Services,
    action: CardAction,
    click: Click,
    press: PressResult,
    place: Place,
    text: str,
) -> TurnRequest:
    """What the click asks, as a request of whoever clicked."""
    saying = PressSource(
        click.operator_id, click.tenant_key, action.create_time_ms, action.operator_tenant
    )
    return await utterance_request(services, saying, press.origin(click), place, text)


async def utterance_request(
    services: Services,
    saying: PressSource,
    origin: Origin,
    place: Place,
    text: str,
    *,
    about: str = "",
) -> TurnRequest:
    """`text` as a request of whoever says it; `about`: the open_id of whom it is about, if not
    about who says it."""
    in_thread = bool(place.root and place.message_id)
    return TurnRequest(
        id=origin.turn_id,
        origin=origin,
        sender_open_id=saying.open_id,
        tenant_key=saying.tenant_key,
        chat_id=place.chat_id,
        chat_type=place.chat_type,
        text=text,
        create_time_ms=saying.at_ms,
        sender_tenant=saying.own_tenant,
        root_id=place.root,
        thread_id=await _thread_of(services, place.message_id) if in_thread else "",
        threaded=bool(place.root),
        mentions=_subject(services, saying, about),
        reply_to=place.message_id,
    )


def _subject(services: Services, saying: PressSource, about: str) -> tuple[Mention, ...]:
    if about in ("", saying.open_id):
        return ()
    name = services.people.of(saying.tenant_key).name(about)
    return (Mention(key="", open_id=about, name=name, is_bot=False, tenant_key=saying.tenant_key),)


async def _thread_of(services: Services, message_id: str) -> str:
    """Feishu's id of the thread a message stands in; "" where Feishu does not say."""
    try:
        async with asyncio.timeout(_LOOK_UP_S):
            messages = await services.feishu.get_message(message_id)
    except (TimeoutError, FeishuFailure) as exc:
        log.info("click.thread_unknown", error=type(exc).__name__)
        return ""
    return messages[0].thread_id if messages else ""
