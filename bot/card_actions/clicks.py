"""Handles clicks on buttons: a follow-up is a message of the person who clicked, a confirmed action
is done once.

The stored press counts (`memory.tables.cards`): a click that was refused, forged or doubled ends
here. A card that one person sees beside a group cannot be patched (Feishu, im-v1 “message/patch”),
so the new card is shown and then the old one is deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, cast

import structlog

from bot.answering.answer_sources import edited_question
from bot.answering.question import Turn
from bot.card_actions.confirmation import answering_of, feature_press_reply, press_name, say
from bot.feishu.errors import FeishuFailure
from bot.feishu.events import CardAction
from bot.feishu.fields import Mention
from bot.hooks import FeatureTurn
from bot.listening.turn_request import TurnRequest
from bot.outbox.buttons import Reply, click_of, touch_of
from bot.outbox.live_card import redraw_card
from bot.queue.consumer import Lease
from bot.services import Services
from bot.text.languages import Language
from bot.turn import handle_request
from memory.models import OpenTurn, Origin
from memory.scope import MAIN_ROOT, FeishuPerson, memory_context, split_conversation_id
from memory.tables.cards import ButtonStore, Click, HandleStore, HandleTouch, PressResult

log = structlog.get_logger()
_LOOK_UP_S = 2.0


async def handle_click(
    services: Services, action: CardAction, received_ms: int, lease: Lease | None = None
) -> None:
    """Does what the pressed button is for. Raises errors that are worth another attempt."""
    asker = FeishuPerson(action.tenant_key, action.operator_open_id)
    if touch := touch_of(action):
        services.rates.count(asker, received_ms / 1000)
        if touch.handle == "again":  # the edge has kept the others
            own_tenant = action.operator_tenant
            at_ms = action.create_time_ms
            await ask_again(services, touch, received_ms, lease, own_tenant=own_tenant, at_ms=at_ms)
        return
    click = click_of(action)
    if click is None:
        return
    press = await ButtonStore(services.rpc).press(click)
    log.info("click", button_id=click.button_id, verdict=press.verdict, kind=press.kind)
    if press.verdict != "accepted":
        return
    services.rates.count(asker, received_ms / 1000)
    if delete := services.hooks.cards.deleting_presses.get(press_name(press)):
        await redraw_card(services, click.message_id, click.tenant_key)
        await delete(services, click, press)
        return
    if press.kind == "show":
        await _show(services, action, click, press, received_ms)
        return
    if press.kind != "share" and stands_beside(press, click):
        await press_beside(services, action, click, press, _words(press), received_ms)
        return
    place = _place(services, click, press)
    if press.kind == "follow_up" and not await _may_ask(services, click, press):
        return
    request = await press_request(services, action, click, press, place, _words(press))
    request = replace(request, in_place=bool(press.payload.get("in_place")))
    answer_call = handle_request(
        services,
        request,
        received_ms,
        answering=answering_of(services, press, action),
        lease=lease,
    )
    if "form" in press.payload or request.in_place:  # drawn anew, it would forget what was chosen
        await answer_call
        return
    if press.kind == "share":  # a refusal leaves its button as it was
        await answer_call
        await redraw_card(services, click.message_id, click.tenant_key)
        return
    await asyncio.gather(answer_call, redraw_card(services, click.message_id, click.tenant_key))


async def _may_ask(services: Services, click: Click, press: PressResult) -> bool:
    """True if everybody in the chat may see the question that a model wrote on the button."""
    asker_context = memory_context(
        chat_id=press.chat_id,
        root=press.root_id,
        subject=click.operator_id,
        actor=click.operator_id,
        tenant_key=click.tenant_key,
        chat_type="p2p" if press.chat_type == "p2p" else "group",
    )
    if await services.hooks.cards.may_show(services, asker_context, [press.turn_id]):
        return True
    log.info("click.closed_document", button_id=click.button_id)
    return False


def _place(services: Services, click: Click, press: PressResult) -> Place:
    """Returns the conversation in which the press counts as a message."""
    if press.kind == "share":
        return question_place(press)
    if press.chat_id == click.operator_id:  # stored before their p2p chat was known
        return conversation_place(services, click.chat_id, MAIN_ROOT, "p2p", click.message_id)
    return card_place(services, click, press)


async def ask_again(
    services: Services,
    touch: HandleTouch,
    received_ms: int,
    lease: Lease | None,
    *,
    own_tenant: str = "",
    at_ms: int = 0,
    asked_ms: int = 0,
) -> None:
    """Asks the question of the card again, in a turn of its own. After a crash that turn exists
    already (`used`) and goes on.

    `at_ms` is the time of the press, or 0 if nobody pressed. If the question has had no answer yet,
    its days (“tomorrow”) count from the time it was written:
    `asked_ms`, where that is known.
    """
    press = await HandleStore(services.rpc).press(touch)
    log.info("again", verdict=press.verdict, turn_id=press.turn_id)
    if press.verdict not in ("accepted", "used") or not press.question:
        return
    chat_id, root = split_conversation_id(press.conversation_id)
    kind = press.chat_type or "group"
    place = conversation_place(services, chat_id, root, kind, touch.message_id)
    saying = PressSource(touch.operator_id, touch.tenant_key, at_ms or received_ms, own_tenant)
    request = await utterance_request(
        services, saying, press.origin(), place, press.question, about=press.subject
    )
    has_waited = not at_ms or press.is_unanswered
    written_ms = (asked_ms or press.asked_ms or 0) if has_waited else 0
    request = replace(request, resumed=not at_ms, written_ms=written_ms)
    if edited_text := await edited_question(services, request, press.turn_id):
        request = replace(request, text=edited_text)
    await asyncio.gather(
        handle_request(services, request, received_ms, lease=lease),
        redraw_card(services, touch.message_id, touch.tenant_key, again=False),
    )


async def _show(
    services: Services, action: CardAction, click: Click, press: PressResult, received_ms: int
) -> None:
    """Asks the question of the group again, where only the presser reads."""
    where = press.payload
    group = memory_context(
        chat_id=where["chat_id"],
        root=where["root_id"],
        subject=click.operator_id,
        actor=click.operator_id,
        tenant_key=click.tenant_key,
        chat_type="group",
    )
    question = await services.store.said(group, where["turn_id"])
    if question is None:  # taken back just now
        log.info("private.question_gone", button_id=click.button_id)
        return
    place = private_place(press)
    request = await press_request(services, action, click, press, place, question.content)
    written_at = datetime.fromisoformat(question.created_at)
    request = replace(request, written_ms=int(written_at.timestamp() * 1000))
    await services.hooks.cards.answer_privately(services, request, received_ms, click, press)


def _words(press: PressResult) -> str:
    if press.kind in ("follow_up", "share"):
        return press.label  # what is asked is what is shown
    description = press.payload["description"]
    return f"{press.label}: {description}" if description else press.label


def stands_beside(press: PressResult, click: Click) -> bool:
    """True if the card is shown to one person beside the group in which they clicked."""
    return press.chat_id != click.chat_id and press.payload.get("beside") == click.chat_id


async def press_beside(
    services: Services,
    action: CardAction,
    click: Click,
    press: PressResult,
    words: str,
    received_ms: int,
) -> None:
    """Answers beside the group, and removes the pressed card. Raises errors that are worth another
    attempt."""
    place = private_place(press)
    request = await press_request(services, action, click, press, place, words)
    answering = partial(_beside_reply, press=press, values=action.form_value)
    await services.hooks.cards.answer_beside(services, request, received_ms, click, answering)


async def _beside_reply(
    services: Services,
    turn: Turn,
    open_turn: OpenTurn,
    *,
    press: PressResult,
    values: Mapping[str, Any],
) -> Reply:
    language = cast(Language, press.payload["language"])
    if press.payload.get("decision") == "cancel":
        here = FeatureTurn(turn.context, turn.chat_type, language, turn.id, press.payload["beside"])
        item_list: Reply = await services.hooks.cards.list_items(services, here)
        return replace(item_list, text=f"{say('cancelled', language)}\n\n{item_list.text}")
    return await feature_press_reply(services, turn, open_turn, press=press, values=values)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a press counts as a message: a conversation (`root` "" is the main one), and the
    message under which the answer is sent, "" for an answer that only one person sees."""

    chat_id: str
    chat_type: str
    root: str
    message_id: str = ""


def card_place(services: Services, click: Click, press: PressResult) -> Place:
    """Returns the place under the card that was clicked."""
    return conversation_place(
        services, press.chat_id, press.root_id, press.chat_type, click.message_id
    )


def conversation_place(
    services: Services, chat_id: str, root: str, chat_type: str, card_id: str
) -> Place:
    """Returns the place under a card of the conversation with that root."""
    root = "" if root == MAIN_ROOT else root
    if not root and chat_type == "group" and services.settings.reply_in_thread:
        root = card_id  # threads were switched on after the card was sent
    return Place(chat_id, chat_type, root, card_id)


def private_place(press: PressResult) -> Place:
    """Returns the place where only the presser reads: the conversation of a button that nobody else
    sees."""
    return Place(press.chat_id, "p2p", "" if press.root_id == MAIN_ROOT else press.root_id)


def question_place(press: PressResult) -> Place:
    """Returns the place in the group, under the question that was answered privately."""
    where = press.payload
    root = "" if where["root_id"] == MAIN_ROOT else where["root_id"]
    return Place(where["chat_id"], "group", root, where["turn_id"])


@dataclass(frozen=True, slots=True)
class PressSource:
    """The person whose press or reaction becomes a message, and when (ms since epoch). `own_tenant`
    is as `TurnRequest.sender_tenant`, "" also if only the memory knows it."""

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
    """Returns the question of the click as a request of the person who clicked."""
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
    """Returns `text` as a request of the person in `saying`. `about` is the open_id of the person
    it is about, "" if that is the same person."""
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
    """Returns Feishu's id of the thread that contains the message; "" if Feishu does not say."""
    try:
        async with asyncio.timeout(_LOOK_UP_S):
            messages = await services.feishu.get_message(message_id)
    except (TimeoutError, FeishuFailure) as exc:
        log.info("click.thread_unknown", error=type(exc).__name__)
        return ""
    return messages[0].thread_id if messages else ""
