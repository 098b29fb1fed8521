"""Shows a person what is kept of them (`/memory`, `/notes`), and corrects or deletes one item at a
press.

Only the person sees it. A card's buttons name the item; neither the list nor a request to delete
is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from bot.agents.tools.note_texts import notes_listed
from bot.answering.question import Turn
from bot.features import commands
from bot.features.feature import CommandSpec, CommandTurn, Feature, HelpLine
from bot.features.own_memory import texts
from bot.features.own_memory.forgetting import (
    FORGET_CHOSEN,
    FORGET_PERSON,
    FORGET_THREAD,
    ask_to_forget,
    forget_chosen,
    forget_confirmed,
    has_receipts,
    receipt_line,
    show_receipts,
)
from bot.features.private_answers.feature import show_alone
from bot.feishu import markup
from bot.feishu.markup import applink_base
from bot.hooks import FeatureTurn, PressTurn
from bot.outbox import texts as outbox_texts
from bot.outbox.buttons import Decision, Reply, decision_button, written_value
from bot.outbox.retractions import newest_receipt, receipts_since
from bot.services import Services
from bot.text.languages import Language
from bot.text.roster import from_card
from memory.errors import NoteInvalid, StoreUnavailable, WorkingMemoryTooLarge
from memory.models import ANSWERED_ELSEWHERE, OpenTurn, StoredMessage, apology_outcome
from memory.scope import AgentMemoryContext
from memory.tables.cards import NewButton, new_button_id
from memory.tables.imports import ImportStore
from memory.tables.items import Item, ItemStore
from memory.tables.notes import NoteStore

_NOTES_SHOWN = 30

PAGE, ASK_DELETE, DELETE, CORRECT, SAVE, BACK, RECEIPTS = PRESSES = (
    "memory.page",
    "memory.ask_delete",
    "memory.delete",
    "memory.correct",
    "memory.save",
    "memory.back",
    "memory.receipts",
)
_IN_PLACE = frozenset({CORRECT, SAVE, BACK})
_NEW_VALUE = "new_value"


async def show_memory(services: Services, command_turn: CommandTurn) -> Reply:
    """In a group it is shown to the person alone."""
    if command_turn.open_turn.degraded:
        return Reply(
            commands.say("memory-away", command_turn.language), means=apology_outcome("memory_away")
        )
    if command_turn.chat_type != "p2p":
        return await _show_memory_alone(services, command_turn.turn, command_turn.language)
    overview = await services.store.overview(command_turn.context)
    messages = [
        (one.role, _spoken_text(services, command_turn, one))
        for one in command_turn.open_turn.history[:-1]
        if one.id > 0
    ]
    item_list = await show_items(services, command_turn)
    overview_text = commands.memory_overview(
        overview, messages, command_turn.language, services.now()
    )
    import_lines = await _import_summary(services, command_turn.context, command_turn.language)
    return replace(
        item_list, text="\n\n".join(filter(None, (overview_text, import_lines, item_list.text)))
    )


async def show_notes(services: Services, command_turn: CommandTurn) -> Reply:
    notes = await NoteStore(services.rpc).list(command_turn.context, limit=_NOTES_SHOWN)
    notes_result = notes_listed(notes, command_turn.context.actor_id).result
    # as if the model had listed them: it is asked about “the first note” next
    call = {"name": "list_notes", "arguments": {}, "result": notes_result, "ok": True, "ms": 0}
    text = commands.note_list(
        notes, command_turn.language, in_group=command_turn.chat_type != "p2p"
    )
    return Reply(text, tool_calls=(call,) if notes else ())


async def _show_memory_alone(services: Services, turn: Turn, language: Language) -> Reply:
    """What the group is told once it is shown: nothing, unless it went elsewhere."""
    outcome = await show_alone(
        services,
        turn,
        lambda beside_group: partial(
            _private_list, group=turn.context, tongue=language, beside_group=beside_group
        ),
    )
    if outcome.outcome == "failed":
        return Reply(texts.say("not-sent-privately", language))
    if outcome.in_p2p:
        return Reply(texts.say("sent-privately", language))
    return Reply("", unsaid=True, forgets=True, means=ANSWERED_ELSEWHERE)


async def _private_list(
    services: Services,
    turn: Turn,
    open_turn: OpenTurn,
    *,
    group: AgentMemoryContext,
    tongue: Language,
    beside_group: str,
) -> Reply:
    """`group`: where it was asked for."""
    here = FeatureTurn(turn.context, "p2p", tongue, turn.id, beside_group)
    try:
        item_list = await show_items(services, here)
        import_lines = await _import_summary(services, group, tongue)
    except StoreUnavailable:
        return Reply(commands.say("memory-away", tongue), means=apology_outcome("memory_away"))
    parts = (texts.say("shown-in-private", tongue), import_lines, item_list.text)
    return replace(item_list, text="\n\n".join(filter(None, parts)))


async def _import_summary(
    services: Services, context: AgentMemoryContext, language: Language
) -> str:
    """How many of the sender's messages the imported history of that chat holds; "" if none."""
    own = await ImportStore(services.rpc).own_messages(context)
    return texts.say("own-imported", language, n=own) if own else ""


def _spoken_text(services: Services, command_turn: CommandTurn, message: StoredMessage) -> str:
    if message.role == "user":
        return message.content
    known_names = services.people.of(command_turn.context.tenant_key).known
    return from_card(message.content, known_names, unescape=markup.unescape)


async def show_items(services: Services, here: FeatureTurn, offset: int = 0) -> Reply:
    """A page of items, each with its buttons beside it; the last page where there are no more so
    far. Raises `StoreError`."""
    total, items = await _page(services, here, offset)
    if total and not items:
        offset = (total - 1) // texts.PAGE_SIZE * texts.PAGE_SIZE
        total, items = await _page(services, here, offset)
    text = texts.item_list(items, total, offset, await _viewer(services, here, items))
    turning = _page_buttons(offset, total, here)
    first = len(items) + (total > texts.PAGE_SIZE)  # entries are counted from the last
    buttons = [
        button
        for entry, item in zip(range(first, 0, -1), items, strict=False)
        for button in _buttons_of(item, here, entry, offset)
    ]
    below = [_receipts_button(here)] if await has_receipts(services, here) else []
    return Reply(text, (*buttons, *turning, *below), forgets=True)


async def _page(services: Services, here: FeatureTurn, offset: int) -> tuple[int, tuple[Item, ...]]:
    return await ItemStore(services.rpc).list(
        here.context, offset=offset, limit=texts.PAGE_SIZE, turn_id=here.turn_id
    )


async def press_item(services: Services, here: PressTurn) -> Reply:
    """What a button of such a card does. Deleting again after a crash finds nothing to delete, and
    says so. Raises `StoreError`."""
    language, payload = here.language, here.press.payload
    which = payload["arguments"]
    match payload["tool"]:
        case "memory.page" | "memory.back":
            return await show_items(services, here, int(which["offset"]))
        case "memory.ask_delete":
            group = new_button_id()
            sure = _button(texts.say("delete", language), DELETE, which, here, group)
            never = _button(outbox_texts.say("cancel", language), DELETE, {}, here, group, "cancel")
            question = texts.ask_delete(which["kind"], which["key"], language)
            return Reply(question, (sure, never))
        case "memory.correct":
            return await _ask_correction(services, here, which)
        case "memory.receipts":
            return await show_receipts(services, here)
        case "memory.save":
            notice = await _correct(services, here, which, written_value(here.values, _NEW_VALUE))
            return await _list_after(services, here, which, notice)
        case _:
            notice = await _delete(services, here, which)
            return await _list_after(services, here, which, notice)  # with the item goes its list


async def _delete(services: Services, here: FeatureTurn, which: Mapping[str, Any]) -> str:
    """Deletes the item; says so, and which receipt that has."""
    before = await newest_receipt(services, here.context)
    counts = await ItemStore(services.rpc).forget(
        here.context, which["kind"], which["id"], which["key"], turn_id=here.turn_id
    )
    if counts is None:
        return texts.say("gone-already", here.language)
    receipts = await receipts_since(services, here.context, before)
    line = receipt_line(receipts, here.language)
    return "\n".join(filter(None, (texts.deletion_receipt(counts, here.language), line)))


async def _ask_correction(services: Services, here: FeatureTurn, which: Mapping[str, Any]) -> Reply:
    """The item as it is, with a form for its new value."""
    item = await _find(services, here, which)
    if item is None:
        return await _list_after(services, here, which, texts.say("gone-already", here.language))
    group, label = new_button_id(), texts.say("new-value", here.language)
    save = _button(texts.say("save", here.language), SAVE, which, here, group)
    form = [{"name": _NEW_VALUE, "label": label}]
    back = _button(outbox_texts.say("cancel", here.language), BACK, which, here, group)
    question = texts.ask_correct(item, here.language)
    return Reply(
        question, (replace(save, payload={**save.payload, "form": form}), back), forgets=True
    )


async def _find(services: Services, here: FeatureTurn, which: Mapping[str, Any]) -> Item | None:
    offset, total = 0, 1
    while offset < total:
        total, page = await ItemStore(services.rpc).list(
            here.context, offset=offset, turn_id=here.turn_id
        )
        for item in page:
            if (item.kind, item.id, item.key) == (which["kind"], which["id"], which["key"]):
                return item
        offset += len(page) or total
    return None


async def _correct(
    services: Services, here: FeatureTurn, which: Mapping[str, Any], value: str
) -> str:
    """Gives the item another value; says what it was and what it is."""
    if not value:
        return texts.say("kept-as-it-was", here.language)
    try:
        old = await ItemStore(services.rpc).correct(
            here.context,
            which["kind"],
            which["id"],
            which["key"],
            value=value,
            turn_id=here.turn_id,
        )
    except (NoteInvalid, WorkingMemoryTooLarge) as exc:
        return str(exc)
    return (
        texts.correction_receipt(old, value, here.language)
        if old
        else texts.say("gone-already", here.language)
    )


async def _list_after(
    services: Services, here: FeatureTurn, which: Mapping[str, Any], notice: str
) -> Reply:
    """The list below what came of a press."""
    remaining_list = await show_items(services, here, which.get("offset", 0))
    return replace(remaining_list, text=f"{notice}\n\n{remaining_list.text}")


async def _viewer(services: Services, here: FeatureTurn, items: tuple[Item, ...]) -> texts.Viewer:
    names = services.people.of(here.context.tenant_key)
    await names.look_up([one for item in items for one in (item.actor_id, item.user_id)])
    return texts.Viewer(
        open_id=here.context.actor_id,
        language=here.language,
        now=services.now(),
        name=names.label,
        applink=applink_base(services.settings.feishu_domain),
    )


def _buttons_of(item: Item, here: FeatureTurn, entry: int, offset: int) -> tuple[NewButton, ...]:
    """The author corrects and deletes, the subject deletes."""
    which = {"kind": item.kind, "id": item.id, "key": item.key, "offset": offset}
    delete = _beside(entry, texts.say("delete", here.language), ASK_DELETE, which, here)
    if item.actor_id != here.context.actor_id:
        return (delete,)
    correct = _beside(entry, texts.say("correct", here.language), CORRECT, which, here)
    return (correct, delete)


def _receipts_button(here: FeatureTurn) -> NewButton:
    button = _button(texts.say("receipts", here.language), RECEIPTS, {}, here)
    again = {} if here.beside else {"again": True}
    return replace(button, payload={**button.payload, **again})


def _page_buttons(offset: int, total: int, here: FeatureTurn) -> list[NewButton]:
    """Beside the line that says which page it is."""
    pages = []
    if offset:
        pages.append(("previous-page", max(0, offset - texts.PAGE_SIZE)))
    if offset + texts.PAGE_SIZE < total:
        pages.append(("next-page", offset + texts.PAGE_SIZE))
    return [
        _beside(1, texts.say(label, here.language), PAGE, {"offset": to}, here)
        for label, to in pages
    ]


def _beside(
    entry: int, label: str, tool: str, arguments: Mapping[str, Any], here: FeatureTurn
) -> NewButton:
    """A button beside an entry. In p2p, where the list stays, it can be pressed again."""
    button = _button(label, tool, arguments, here)
    again = {} if here.beside else {"again": True}
    return replace(button, payload={**button.payload, "entry": entry, **again})


def _button(
    label: str,
    tool: str,
    arguments: Mapping[str, Any],
    here: FeatureTurn,
    group: str = "",
    choice: Decision = "confirm",
) -> NewButton:
    payload: dict[str, Any] = {"tool": tool, "arguments": dict(arguments), "description": ""}
    if here.beside:
        payload["beside"] = here.beside
    elif tool in _IN_PLACE:
        payload["in_place"] = True
    return decision_button(
        label,
        payload,
        choice,
        group_id=group or new_button_id(),
        chat_type=here.chat_type,
        language=here.language,
    )


OWN_MEMORY = Feature(
    name="own_memory",
    page_texts={"fact": partial(texts.item_line, "fact")},
    commands=(
        CommandSpec(
            words=("memory", "记忆"),
            run=show_memory,
            help=(
                HelpLine(
                    "`/memory`: what I remember about you; only you can see it, correct it or "
                    "delete it",
                    "`/记忆`：查看我记住的关于你的内容（仅你可见），可以逐条更正或删除",
                ),
            ),
            personal=True,
        ),
        CommandSpec(
            words=("notes", "笔记"),
            run=show_notes,
            help=(HelpLine("`/notes`: your notes", "`/笔记`：查看你的笔记"),),
            personal=True,
        ),
        CommandSpec(
            words=("forget", "忘记"),
            run=ask_to_forget,
            help=(
                HelpLine(
                    "`/forget`: forget this thread, or everything about you (`/forget all`); "
                    "I'll ask you to confirm first",
                    "`/忘记`：忘记这个话题，或关于你的一切（`/忘记 全部`），执行前会请你确认",
                ),
            ),
            personal=True,
        ),
    ),
    presses={
        **dict.fromkeys(PRESSES, press_item),
        FORGET_CHOSEN: forget_chosen,
    },
    card_hooks={"list_items": show_items},
    deleting_presses=dict.fromkeys((FORGET_THREAD, FORGET_PERSON), forget_confirmed),
)
