"""A confirmed `/forget`: announced, done, and then said to be done."""

from __future__ import annotations

import asyncio
import contextlib
from typing import cast

import structlog

from bot.features.commands import texts
from bot.features.commands.dispatch import FORGET_THREAD
from bot.feishu import cards
from bot.feishu.errors import FeishuError
from bot.mentions import Person
from bot.outbox.delivery import Target, Undeliverable
from bot.outbox.notices import say
from bot.outbox.withdrawing import withdraw_cards
from bot.services import Services
from bot.text.languages import Language
from memory.kept.buttons import Click, Press
from memory.kept.operations import Operations
from memory.scope import MAIN_ROOT

log = structlog.get_logger()


async def forget(services: Services, click: Click, press: Press) -> None:
    """Says that it forgets, forgets, and then says that it is done.

    Nothing of this is stored: a turn would be the first thing to remember. The notice goes out
    before, under a uuid of its own, so that an attempt after a crash finishes the same message.
    """
    language = cast(Language, press.payload["language"])
    tool = press.payload["tool"]
    in_thread = press.chat_type == "group" and press.root_id != MAIN_ROOT
    target = Target(click.message_id, click.chat_id, in_thread)
    notice = ""
    with contextlib.suppress(Undeliverable):
        sent = await say(
            services,
            target,
            _to(click, texts.say("forgetting", language), press),
            key=press.origin(click).turn_id,
            names=services.people.of(click.tenant_key).known,
        )
        notice = sent.message_id
    await _delete(services, click, press, tool)
    await withdraw_cards(services)
    log.info("forgotten", what=tool, chat_id=click.chat_id)
    if notice:
        card = cards.answer_card(_to(click, texts.forgotten(tool, language), press))
        try:
            await services.feishu.patch_card(notice, cards.card_content(card))
        except FeishuError as exc:
            log.warning("forgotten.notice", code=exc.code, log_id=exc.log_id)


async def _delete(services: Services, click: Click, press: Press, tool: str) -> None:
    """The queue first: after the memory, the button itself is gone and no attempt can follow."""
    of_thread = tool == FORGET_THREAD
    if services.queue is not None:
        thread = press.conversation_id if of_thread else None
        await asyncio.to_thread(
            services.queue.forget, open_id=click.operator_id, conversation_id=thread
        )
    operations = Operations(services.rpc)
    if of_thread:
        await operations.forget_conversation(
            press.conversation_id, click.operator_id, keep_notes=True
        )
    else:
        services.people.forget(click.operator_id)
        await operations.forget_person(click.operator_id)  # whatever tenant they wrote under


def _to(click: Click, text: str, press: Press) -> str:
    """In a group the person is addressed."""
    tag = Person(click.operator_id, click.operator_id).at_tag
    return f"{tag} {text}" if tag and press.chat_type == "group" else text
