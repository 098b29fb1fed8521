"""`/forget`: asked for with buttons; once confirmed announced, done, and then said to be done."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import cast

import structlog

from bot.features.commands import texts
from bot.features.feature import CommandTurn
from bot.features.own_memory.by_words import ask_to_forget_words
from bot.feishu import cards
from bot.feishu.errors import FeishuError
from bot.outbox import texts as outbox_texts
from bot.outbox.buttons import Decision, Reply, decision
from bot.outbox.delivery import Target, Undeliverable
from bot.outbox.notices import say
from bot.outbox.receipts import receipt_copy, sign_receipts
from bot.outbox.withdrawing import withdraw_cards
from bot.services import Services
from bot.text.languages import Language
from bot.text.roster import Person
from bot.text.slash_commands import means_everything, means_thread
from memory.outcomes import apologised
from memory.scope import MAIN_ROOT
from memory.tables.buttons import Click, NewButton, Press, new_id
from memory.tables.operations import Operations
from memory.tables.receipts import Copy, new_salt
from memory.tables.said import SaidStore

log = structlog.get_logger()

FORGET_THREAD = "forget.thread"
FORGET_PERSON = "forget.person"


async def ask_to_forget(services: Services, command_turn: CommandTurn) -> Reply:
    """What would be forgotten, with buttons."""
    command, language = command_turn.command, command_turn.language
    if command_turn.opened.degraded:  # a card without the memory has no buttons
        return Reply(texts.say("memory-away", language), means=apologised("memory_away"))
    if means_everything(command):
        choices = {FORGET_PERSON: outbox_texts.say("confirm", language)}
    elif means_thread(command):
        choices = {FORGET_THREAD: outbox_texts.say("confirm", language)}
    elif command.words:
        return await ask_to_forget_words(services, command_turn, command.words)
    else:
        choices = {one: texts.choose(one, language) for one in (FORGET_THREAD, FORGET_PERSON)}
    return Reply(texts.forget(choices, language), _choices(command_turn, choices))


def _choices(command_turn: CommandTurn, choices: Mapping[str, str]) -> tuple[NewButton, ...]:
    """One button per choice and one to cancel; pressing one uses up all."""
    group = new_id()
    in_thread = command_turn.chat_type == "p2p" or command_turn.turn.request.in_thread

    def button(tool: str, text: str, choice: Decision) -> NewButton:
        payload = {
            "tool": tool,
            "arguments": {"in_chat": not in_thread},
            "description": texts.forgets(tool, command_turn.language),
        }
        return decision(
            text,
            payload,
            choice,
            group_id=group,
            chat_type=command_turn.chat_type,
            language=command_turn.language,
            danger=tool == FORGET_PERSON and choice == "confirm",
        )

    first = next(iter(choices))
    confirming = (button(tool, text, "confirm") for tool, text in choices.items())
    return (*confirming, button(first, outbox_texts.say("cancel", command_turn.language), "cancel"))


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
        delivery = await say(
            services,
            target,
            _to(click, texts.say("forgetting", language), press),
            key=press.origin(click).turn_id,
            names=services.people.of(click.tenant_key).known,
        )
        notice = delivery.message_id
    copy = await _delete(services, click, press, tool)
    await withdraw_cards(services)
    log.info("forgotten", what=tool, chat_id=click.chat_id)
    if notice:
        text = texts.forgotten(tool, language) + _receipt(copy, press, language)
        card = cards.answer_card(_to(click, text, press))
        try:
            await services.feishu.patch_card(notice, cards.card_content(card))
        except FeishuError as exc:
            log.warning("forgotten.notice", code=exc.code, log_id=exc.log_id)


async def _delete(services: Services, click: Click, press: Press, tool: str) -> Copy | None:
    """The queue first: after the memory, the button itself is gone and no attempt can follow.
    Once more at the end, for what was counted of the person meanwhile. Returns the receipt of
    somebody who is forgotten: nothing is left by which they could ask for it."""
    of_thread = tool == FORGET_THREAD
    if services.queue is not None:
        thread = press.conversation_id if of_thread else None
        await asyncio.to_thread(
            services.queue.forget, open_id=click.operator_id, conversation_id=thread
        )
    operations = Operations(services.rpc)
    if of_thread and press.payload["arguments"].get("in_chat"):
        await SaidStore(services.rpc).forget_in_chat(press.chat_id, click.operator_id)
    elif of_thread:
        await operations.forget_conversation(
            press.conversation_id, click.operator_id, keep_notes=True
        )
    else:
        services.people.forget(click.operator_id)
        salt = new_salt()
        # whatever tenant they wrote under
        await operations.forget_person(click.operator_id, salt=salt)
        if services.queue is not None:
            await asyncio.to_thread(services.queue.forget_rows, click.operator_id)
        return await receipt_copy(services, salt)
    await sign_receipts(services)
    return None


def _receipt(copy: Copy | None, press: Press, language: Language) -> str:
    """The line that anchors the receipt; in p2p also the person's copy. With its salt the members
    of a group could guess the words."""
    if copy is None:
        return ""
    line = texts.say("receipt", language, label=copy.receipt.label)
    receipt_block = f"\n```json\n{copy.text}\n```" if press.chat_type == "p2p" else ""
    return f"\n\n{line}{receipt_block}"


def _to(click: Click, text: str, press: Press) -> str:
    """In a group the person is addressed."""
    tag = Person(click.operator_id, click.operator_id).at_tag
    return f"{tag} {text}" if tag and press.chat_type == "group" else text
