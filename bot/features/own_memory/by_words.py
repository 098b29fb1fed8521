"""“forget the gym code”: shows what is meant with a choice for each; one press deletes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.features.feature import CommandTurn, PressTurn
from bot.features.own_memory import texts
from bot.features.own_memory.item_names import line_of, short
from bot.features.own_memory.meant import Match, match, names_something
from bot.features.own_memory.receipts import receipt_line
from bot.feishu import markup
from bot.outbox.buttons import Reply, chosen, decision
from bot.outbox.receipts import newest_receipt, receipts_since
from bot.outbox.same_words import find_same_words, tell_same_words
from bot.services import Services
from bot.text.dates import spoken
from bot.text.languages import join_list
from memory.tables.buttons import NewButton, new_id
from memory.tables.items import Item, ItemStore
from memory.tables.said import SaidStore

FORGET_CHOSEN = "forget.chosen"
_MOST = 10
_WORDS_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Meant:
    """Something that may be meant. `which`: how it is named when it is to be deleted."""

    line: str
    which: Mapping[str, str]
    match: Match


async def ask_to_forget_words(services: Services, command_turn: CommandTurn, words: str) -> Reply:
    """What of the sender's own is meant by `words`, or who else said it. Raises `StoreError`."""
    language = command_turn.language
    if not names_something(words):
        return Reply(texts.say("forget-what", language))
    items, others = await _meant(services, command_turn, words)
    if not items:
        if others:
            names = join_list([short(one) for one in others], language)
            return Reply(texts.say("said-by-others", language, names=names), forgets=True)
        return Reply(texts.say("nothing-meant", language), forgets=True)
    lines = [f"**{n}.** {markup.verbatim(one.line)}" for n, one in enumerate(items, 1)]
    parts = [texts.say("forget-these", language), "\n".join(lines)]
    parts.append(texts.say("recall-yourself", language))
    return Reply("\n\n".join(parts), _buttons(command_turn, items), forgets=True)


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


async def _meant(
    services: Services, command_turn: CommandTurn, words: str
) -> tuple[list[Meant], tuple[str, ...]]:
    """What is meant of the sender's own, surely meant first, and who else said such a thing."""
    candidates = []
    for item in await _own_items(services, command_turn):
        fits = match(words, f"{item.key} {texts.value_text(item.value)}")
        which = {"kind": item.kind, "id": item.id, "key": item.key}
        candidates.append(
            Meant(line_of(item.kind, item.key, item.value, command_turn.language), which, fits)
        )
    messages = await SaidStore(services.rpc).to_forget(
        command_turn.context,
        everywhere=command_turn.chat_type == "p2p",
        turn_id=command_turn.turn_id,
    )
    me, others, now = command_turn.context.actor_id, [], services.now()
    for one in messages:
        fits = match(words, one.content)
        if one.author_id == me:
            at = datetime.fromisoformat(one.at).astimezone(now.tzinfo)
            when = spoken.day(at, command_turn.language, now=now)
            said_then = short(one.content, _WORDS_SHOWN)
            line = texts.say("you-said", command_turn.language, text=said_then, when=when)
            candidates.append(Meant(line, {"message": one.message_id}, fits))
        elif fits == "sure":
            others.append(one.author)
    meant_items = [one for one in candidates if one.match == "sure"] or [
        one for one in candidates if one.match
    ]
    return meant_items[:_MOST], tuple(dict.fromkeys(others))


def _buttons(command_turn: CommandTurn, items: Sequence[Meant]) -> tuple[NewButton, ...]:
    """One that deletes what is chosen in the form around it, and one to cancel. What they store
    has no words of the items."""
    language, group = command_turn.language, new_id()
    options = [["yes", texts.say("delete", language)], ["no", texts.say("keep", language)]]
    form = [
        {
            "name": f"item_{n}",
            "label": texts.say("number", language, n=n),
            "initial": "yes" if one.match == "sure" else "no",
            "options": options,
        }
        for n, one in enumerate(items, 1)
    ]
    payload: dict[str, Any] = {
        "tool": FORGET_CHOSEN,
        "arguments": {"chosen": [dict(one.which) for one in items]},
        "description": "",
    }
    delete = decision(
        texts.say("delete-chosen", language),
        {**payload, "form": form},
        "confirm",
        group_id=group,
        chat_type=command_turn.chat_type,
        language=language,
    )
    cancel = decision(
        texts.say("keep-all", language),
        payload,
        "cancel",
        group_id=group,
        chat_type=command_turn.chat_type,
        language=language,
    )
    return delete, cancel


async def forget_chosen(services: Services, here: PressTurn) -> Reply:
    """Deletes what was chosen and says how much that was. Raises `StoreError`."""
    payload = here.press.payload
    if payload["decision"] != "confirm":
        return Reply(texts.say("kept-as-it-was", here.language))
    form = payload["form"]
    initial = {one["name"]: one["initial"] for one in form}
    picked_ids = initial | chosen(form, here.values)
    which = [
        one
        for n, one in enumerate(payload["arguments"]["chosen"], 1)
        if picked_ids.get(f"item_{n}") == "yes"
    ]
    if not which:
        return Reply(texts.say("kept-as-it-was", here.language))
    before = await newest_receipt(services, here.context)
    messages = [one["message"] for one in which if "message" in one]
    same = await find_same_words(services, messages)
    counts = await SaidStore(services.rpc).forget(
        here.context, [one for one in which if "kind" in one], messages, turn_id=here.turn_id
    )
    await tell_same_words(services, same, here.turn_id)
    receipts = await receipts_since(services, here.context, before)
    line = receipt_line(receipts, here.language)
    receipt_text = "\n".join(filter(None, (texts.gone(counts, here.language), line)))
    return Reply(receipt_text, forgets=True)
