"""Clicks on buttons, in the worker: a follow-up is a message of whoever clicked, a confirmed action
is done once.

The press is what counts (`memory.tables.buttons`): a click that was refused at the edge, forged or
double, ends here. A follow-up then goes the way of every message, under the click's own turn id; a
model wrote it, so what it would change waits for a confirmation (`bot.agents.tools.recording`).
What a feature's button does is in the feature's room (`bot.features.registry`).
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import structlog

from bot.answering.edits import edited_question
from bot.card_actions.confirmation import answering_of, may_be_told
from bot.card_actions.ephemeral_cards import press_beside, stands_beside
from bot.card_actions.pressed_message import (
    Place,
    Saying,
    as_pressed,
    as_said,
    asked_there,
    in_conversation,
    under_card,
    where_alone,
)
from bot.features.private_answers.answering import AnswerPlace, answer_privately
from bot.features.registry import DELETING_PRESSES, press_name
from bot.feishu.events import CardAction
from bot.outbox.buttons import click_of, touch_of
from bot.outbox.redrawing import redraw
from bot.queue.consumer import Lease
from bot.queue.person_rates import Asker
from bot.services import Services
from bot.turn import handle_request
from memory.scope import MAIN_ROOT, memory_context, place_of
from memory.tables.buttons import ButtonStore, Click, Press
from memory.tables.handles import HandleStore, Touch

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
        await redraw(services, click.message_id, click.tenant_key)
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
    request = await as_pressed(services, action, click, press, place, _words(press))
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
        await redraw(services, click.message_id, click.tenant_key)
        return
    await asyncio.gather(answer_call, redraw(services, click.message_id, click.tenant_key))


async def _may_ask(services: Services, click: Click, press: Press) -> bool:
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


def _place(services: Services, click: Click, press: Press) -> Place:
    """Where what was pressed is said."""
    if press.kind == "share":
        return asked_there(press)
    if press.chat_id == click.operator_id:  # stored before their p2p chat was known
        return in_conversation(services, click.chat_id, MAIN_ROOT, "p2p", click.message_id)
    return under_card(services, click, press)


async def ask_again(
    services: Services,
    touch: Touch,
    received_ms: int,
    lease: Lease | None,
    *,
    own_tenant: str = "",
    at_ms: int = 0,
) -> None:
    """Asks the question of the card again, in a turn of its own. After a crash that turn is there
    already (`used`) and goes on. `at_ms`: when somebody pressed, 0: nobody did."""
    press = await HandleStore(services.rpc).press(touch)
    log.info("again", verdict=press.verdict, turn_id=press.turn_id)
    if press.verdict not in ("accepted", "used") or not press.question:
        return
    chat_id, root = place_of(press.conversation_id)
    kind = press.chat_type or "group"
    place = in_conversation(services, chat_id, root, kind, touch.message_id)
    saying = Saying(touch.operator_id, touch.tenant_key, at_ms or received_ms, own_tenant)
    request = await as_said(
        services, saying, press.origin(), place, press.question, about=press.subject
    )
    if edited_text := await edited_question(services, request, press.turn_id):
        request = replace(request, text=edited_text)
    await asyncio.gather(
        handle_request(services, request, received_ms, lease=lease),
        redraw(services, touch.message_id, touch.tenant_key, again=False),
    )


async def _show(
    services: Services, action: CardAction, click: Click, press: Press, received_ms: int
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
    place = where_alone(press)
    request = await as_pressed(services, action, click, press, place, question.content)
    await answer_privately(services, request, received_ms, answer_place)


def _words(press: Press) -> str:
    if press.kind in ("follow_up", "share"):
        return press.label  # what is asked is what is shown
    description = press.payload["description"]
    return f"{press.label}: {description}" if description else press.label
