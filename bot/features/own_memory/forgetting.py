"""Answers `/forget`: asks for confirmation, deletes a conversation, a person's memory or chosen
items, and shows the receipts."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

import structlog

from bot.features import commands
from bot.features.feature import CommandTurn
from bot.features.own_memory import texts
from bot.features.own_memory.matching import Match, match, names_something
from bot.features.own_memory.texts import item_line, short_text
from bot.feishu import cards, markup
from bot.feishu.errors import FeishuError
from bot.hooks import FeatureTurn, PressTurn
from bot.listening.requests import is_question
from bot.outbox import texts as outbox_texts
from bot.outbox.buttons import Decision, Reply, decision_button
from bot.outbox.delivery import Target, Undeliverable
from bot.outbox.retractions import (
    find_same_words,
    newest_receipt,
    receipt_copy,
    receipts_since,
    sign_receipts,
    tell_same_words,
    withdraw_cards,
)
from bot.outbox.sending import send_notice
from bot.services import Services
from bot.text import times
from bot.text.languages import Language, join_list
from bot.text.roster import Person
from bot.text.slash_commands import means_everything, means_thread
from memory.models import apology_outcome
from memory.recall.selection import value_text
from memory.receipts import Copy, Receipt, ReceiptStore, new_salt
from memory.scope import MAIN_ROOT
from memory.tables.cards import Click, NewButton, PressResult, new_button_id
from memory.tables.items import Item, ItemStore, SaidMessageStore
from memory.tables.operations import Operations

log = structlog.get_logger()
FORGET_THREAD = "forget.thread"
FORGET_PERSON = "forget.person"

FORGET_CHOSEN = "forget.chosen"
_MOST = 20
WORDS_SHOWN = 120

_AT_ONCE = 5


async def ask_to_forget(services: Services, command_turn: CommandTurn) -> Reply:
    """What would be forgotten, with buttons."""
    command, language = command_turn.command, command_turn.language
    if command_turn.open_turn.degraded:  # a card without the memory has no buttons
        return Reply(commands.say("memory-away", language), means=apology_outcome("memory_away"))
    if means_everything(command):
        choices = {FORGET_PERSON: outbox_texts.say("confirm", language)}
    elif means_thread(command):
        choices = {FORGET_THREAD: outbox_texts.say("confirm", language)}
    elif command.words:
        return await ask_to_forget_words(services, command_turn, command.words)
    else:
        choices = {
            one: commands.forget_choice_label(one, language)
            for one in (FORGET_THREAD, FORGET_PERSON)
        }
    return Reply(commands.forget_question(choices, language), _scope_buttons(command_turn, choices))


def _scope_buttons(command_turn: CommandTurn, choices: Mapping[str, str]) -> tuple[NewButton, ...]:
    """One button per choice and one to cancel; pressing one uses up all."""
    group = new_button_id()
    in_thread = command_turn.chat_type == "p2p" or command_turn.turn.request.in_thread

    def button(tool: str, text: str, choice: Decision) -> NewButton:
        payload = {
            "tool": tool,
            "arguments": {"in_chat": not in_thread},
            "description": commands.forget_scope_text(tool, command_turn.language),
        }
        return decision_button(
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


async def forget_confirmed(services: Services, click: Click, press: PressResult) -> None:
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
        delivery = await send_notice(
            services,
            target,
            _addressed_to(click, commands.say("forgetting", language), press),
            key=press.origin(click).turn_id,
            names=services.people.of(click.tenant_key).known,
        )
        notice = delivery.message_id
    copy = await _delete_scope(services, click, press, tool)
    await withdraw_cards(services)
    log.info("forgotten", what=tool, chat_id=click.chat_id)
    if notice:
        text = commands.forgotten_text(tool, language) + _receipt_part(copy, press, language)
        card = cards.answer_card(_addressed_to(click, text, press))
        try:
            await services.feishu.patch_card(notice, cards.card_content(card))
        except FeishuError as exc:
            log.warning("forgotten.notice", code=exc.code, log_id=exc.log_id)


async def _delete_scope(
    services: Services, click: Click, press: PressResult, tool: str
) -> Copy | None:
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
        await SaidMessageStore(services.rpc).forget_in_chat(press.chat_id, click.operator_id)
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


def _receipt_part(copy: Copy | None, press: PressResult, language: Language) -> str:
    """The line that anchors the receipt; in p2p also the person's copy. With its salt the members
    of a group could guess the words."""
    if copy is None:
        return ""
    line = commands.say("receipt", language, label=copy.receipt.label)
    receipt_block = f"\n```json\n{copy.text}\n```" if press.chat_type == "p2p" else ""
    return f"\n\n{line}{receipt_block}"


def _addressed_to(click: Click, text: str, press: PressResult) -> str:
    """In a group the person is addressed."""
    tag = Person(click.operator_id, click.operator_id).at_tag
    return f"{tag} {text}" if tag and press.chat_type == "group" else text


@dataclass(frozen=True, slots=True)
class ForgetCandidate:
    """Something that may be meant. `which`: how it is named when it is to be deleted."""

    line: str
    which: Mapping[str, str]
    match: Match


async def ask_to_forget_words(services: Services, command_turn: CommandTurn, words: str) -> Reply:
    """What of the sender's own is meant by `words`, or who else said it. Raises `StoreError`."""
    language = command_turn.language
    if not names_something(words):
        return Reply(texts.say("forget-what", language))
    candidates, others = await _find_candidates(services, command_turn, words)
    names = join_list([short_text(one) for one in others], language)
    if not candidates:
        text = texts.say("said-by-others" if others else "nothing-meant", language, names=names)
        return Reply(text, forgets=True)
    items, hidden_count = candidates[:_MOST], len(candidates) - _MOST
    parts = [texts.say("forget-these", language), texts.say("recall-yourself", language)]
    parts += [texts.say("others-said-it-too", language, names=names)] if others else []
    parts += [texts.say("more-meant", language, n=hidden_count)] if hidden_count > 0 else []
    parts += map(forget_line, itertools.count(1), items)
    return Reply("\n\n".join(parts), _chosen_buttons(command_turn, items), forgets=True)


def forget_line(number: int, candidate: ForgetCandidate) -> str:
    """The paragraph of a candidate in the list."""
    return f"**{number}.** {markup.verbatim_words(candidate.line)}"


async def _own_items(services: Services, command_turn: CommandTurn) -> list[Item]:
    """All facts and notes of the sender that may be read here."""
    store, items = ItemStore(services.rpc), list[Item]()
    while True:
        total, page = await store.list(
            command_turn.context, offset=len(items), turn_id=command_turn.turn_id
        )
        items += page
        if not page or len(items) >= total:
            return items


async def _find_candidates(
    services: Services, command_turn: CommandTurn, words: str
) -> tuple[list[ForgetCandidate], tuple[str, ...]]:
    """What is meant of the sender's own, surely meant first, and who else said such a thing."""
    candidates = []
    for item in await _own_items(services, command_turn):
        fits = match(words, f"{item.key}: {value_text(item.value)}")
        which = {"kind": item.kind, "id": item.id, "key": item.key}
        candidates.append(
            ForgetCandidate(
                item_line(item.kind, item.key, item.value, command_turn.language, WORDS_SHOWN),
                which,
                fits,
            )
        )
    store, now = SaidMessageStore(services.rpc), services.now()
    for one in await store.to_forget(
        command_turn.context,
        everywhere=command_turn.chat_type == "p2p",
        turn_id=command_turn.turn_id,
    ):
        at = datetime.fromisoformat(one.at).astimezone(now.tzinfo)
        when = times.day_text(at, command_turn.language, now=now)
        said_then = markup.quotable(one.content, WORDS_SHOWN)
        line = texts.say("you-said", command_turn.language, text=said_then, when=when)
        which = {"message": one.message_id}
        candidates.append(ForgetCandidate(line, which, match(words, one.content)))
    others = [
        one.author
        for one in await store.of_others(command_turn.context)
        if match(words, one.content) == "sure" and not is_question(one.content)
    ]
    meant_items = [one for one in candidates if one.match == "sure"] or [
        one for one in candidates if one.match
    ]
    return meant_items, tuple(dict.fromkeys(others))


def _chosen_buttons(
    command_turn: CommandTurn, items: Sequence[ForgetCandidate]
) -> tuple[NewButton, ...]:
    """One that deletes what is checked in the form around it, and one to cancel. What they store
    has no words of the items."""
    language, group = command_turn.language, new_button_id()
    form = [
        {
            "name": f"item_{n}",
            "label": texts.say("delete", language),
            "checked": one.match == "sure",
            "entry": len(items) - n + 1,
        }
        for n, one in enumerate(items, 1)
    ]
    payload: dict[str, Any] = {
        "tool": FORGET_CHOSEN,
        "arguments": {"chosen": [dict(one.which) for one in items]},
        "description": "",
    }
    delete = decision_button(
        texts.say("delete-chosen", language),
        {**payload, "form": form},
        "confirm",
        group_id=group,
        chat_type=command_turn.chat_type,
        language=language,
    )
    cancel = decision_button(
        texts.say("keep-all", language),
        payload,
        "cancel",
        group_id=group,
        chat_type=command_turn.chat_type,
        language=language,
    )
    return delete, cancel


async def forget_chosen(services: Services, here: PressTurn) -> Reply:
    """Deletes what was checked and says how much that was. Raises `StoreError`."""
    payload = here.press.payload
    if payload["decision"] != "confirm":
        return Reply(texts.say("kept-as-it-was", here.language))
    which = [
        one
        for n, one in enumerate(payload["arguments"]["chosen"], 1)
        if here.values.get(f"item_{n}") in (True, "true")
    ]
    if not which:
        return Reply(texts.say("kept-as-it-was", here.language))
    before = await newest_receipt(services, here.context)
    messages = [one["message"] for one in which if "message" in one]
    same = await find_same_words(services, messages)
    counts = await SaidMessageStore(services.rpc).forget(
        here.context, [one for one in which if "kind" in one], messages, turn_id=here.turn_id
    )
    await tell_same_words(services, same, here.turn_id)
    receipts = await receipts_since(services, here.context, before)
    line = receipt_line(receipts, here.language)
    receipt_text = "\n".join(filter(None, (texts.deletion_counts(counts, here.language), line)))
    return Reply(receipt_text, forgets=True)


def receipt_line(receipts: Sequence[Receipt], language: Language) -> str:
    """The line that names the receipts of a deletion; "" if none is signed."""
    labels = join_list([one.label for one in receipts], language)
    return texts.say("receipt-line", language, labels=labels) if labels else ""


async def has_receipts(services: Services, here: FeatureTurn) -> bool:
    """Whether something of the sender's was deleted. Raises `StoreError`."""
    store = ReceiptStore(services.rpc)
    return bool(await store.own(here.context.actor_id, here.context.tenant_key, limit=1))


async def show_receipts(services: Services, here: FeatureTurn) -> Reply:
    """Copies of the sender's receipts with the salts that wait for them. Raises `StoreError`."""
    await sign_receipts(services)
    context, store = here.context, ReceiptStore(services.rpc)
    copies = await store.take(
        context.actor_id, context.tenant_key, limit=_AT_ONCE, turn_id=here.turn_id
    )
    if not copies:
        return Reply(texts.say("no-receipts", here.language))
    texts_shown = [_receipt_entry(one, here.language, services.now()) for one in copies]
    return Reply(
        "\n\n".join((texts.say("receipts-intro", here.language), *texts_shown)), forgets=True
    )


def _receipt_entry(copy: Copy, language: Language, now: datetime) -> str:
    fields = copy.receipt.fields
    at = datetime.fromisoformat(fields["at"]).astimezone(now.tzinfo)
    line = texts.say(
        "receipt-entry",
        language,
        label=copy.receipt.label,
        when=times.moment_text(at, language, now=now),
        n=sum(one["deleted"] for one in fields["counts"].values()),
    )
    salt_note = "" if copy.salt else f" {texts.say('salt-given', language)}"
    return f"{line}{salt_note}\n```json\n{copy.text}\n```"
