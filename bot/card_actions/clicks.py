"""Handles clicks on buttons: a follow-up is a message of the person who clicked, a confirmed
action is done once.

The stored press counts (`memory.tables.buttons`): a click that was refused, forged or doubled ends
here. A card that one person sees beside a group cannot be patched (Feishu, im-v1 “message/patch”),
so the new card is shown and then the old one is deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, cast

import structlog

from bot.answering.answer_sources import edited_question
from bot.answering.question import Turn
from bot.card_actions.confirmation import answering_of, feature_press_reply, may_be_told
from bot.card_actions.pressed_message import (
    Place,
    PressSource,
    card_place,
    conversation_place,
    press_request,
    private_place,
    question_place,
    utterance_request,
)
from bot.features import commands
from bot.features.feature import FeatureTurn
from bot.features.own_memory import feature
from bot.features.private_answers.feature import (
    AnswerPlace,
    answer_alone,
    answer_privately,
    take_away,
)
from bot.features.registry import DELETING_PRESSES, press_name
from bot.feishu.events import CardAction
from bot.outbox.buttons import Reply, click_of, touch_of
from bot.outbox.delivery import Aside
from bot.outbox.live_card import redraw_card
from bot.queue.consumer import Lease
from bot.queue.person_rates import Asker
from bot.services import Services
from bot.text.languages import Language
from bot.turn import handle_request
from memory.models import OpenTurn
from memory.scope import MAIN_ROOT, memory_context, split_conversation_id
from memory.tables.cards import ButtonStore, Click, HandleStore, HandleTouch, PressResult

log = structlog.get_logger()


async def handle_click(
    services: Services, action: CardAction, received_ms: int, lease: Lease | None = None
) -> None:
    """Does what the pressed button is for. Raises what is worth another attempt."""
    asker = Asker(action.tenant_key, action.operator_open_id)
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
    if delete := DELETING_PRESSES.get(press_name(press)):
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
        answering=answering_of(press, action),
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
    """Whether what a model wrote on the button may be said there."""
    asker_context = memory_context(
        chat_id=press.chat_id,
        root=press.root_id,
        subject=click.operator_id,
        actor=click.operator_id,
        tenant_key=click.tenant_key,
        chat_type="p2p" if press.chat_type == "p2p" else "group",
    )
    if await may_be_told(services, asker_context, press):
        return True
    log.info("click.closed_document", button_id=click.button_id)
    return False


def _place(services: Services, click: Click, press: PressResult) -> Place:
    """Where what was pressed is said."""
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
    """Asks the question of the card again, in a turn of its own. After a crash that turn is there
    already (`used`) and goes on. `at_ms`: when somebody pressed, 0: nobody did. A question that has
    waited for its first answer until now means the days that it meant when it was written:
    `asked_ms`, where that is known."""
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
    answer_place = AnswerPlace(
        where, beside=click.chat_id == where["chat_id"], card_id=click.message_id
    )
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
    await answer_privately(services, request, received_ms, answer_place)


def _words(press: PressResult) -> str:
    if press.kind in ("follow_up", "share"):
        return press.label  # what is asked is what is shown
    description = press.payload["description"]
    return f"{press.label}: {description}" if description else press.label


def stands_beside(press: PressResult, click: Click) -> bool:
    """Whether its card stands beside what is said in the group of the click, where nobody else
    sees it."""
    return press.chat_id != click.chat_id and press.payload.get("beside") == click.chat_id


async def press_beside(
    services: Services,
    action: CardAction,
    click: Click,
    press: PressResult,
    words: str,
    received_ms: int,
) -> None:
    """Answers there, and takes the pressed card away. Raises what is worth another attempt."""
    place = private_place(press)
    request = await press_request(services, action, click, press, place, words)
    target = Aside(click.operator_id, click.chat_id)
    answering = partial(_beside_reply, press=press, values=action.form_value)
    outcome = await answer_alone(services, request, received_ms, target, answering)
    if outcome.outcome != "failed":
        await take_away(services, click.message_id)


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
        left = await feature.show_items(services, here)
        return replace(left, text=f"{commands.say('cancelled', language)}\n\n{left.text}")
    return await feature_press_reply(services, turn, open_turn, press=press, values=values)
