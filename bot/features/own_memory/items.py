"""What is kept of a person, one item at a time: shown, corrected, deleted. Only to them alone.

A card's buttons carry which item; a list is not stored a second time, and neither is what asks for
a deletion: such a turn keeps no words once it is over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bot.features.feature import FeatureTurn, PressTurn
from bot.features.own_memory import texts
from bot.features.own_memory.receipts import has_receipts, receipt_line, show_receipts
from bot.feishu.applink import applink
from bot.outbox import texts as outbox_texts
from bot.outbox.buttons import Decision, Reply, decision, written
from bot.outbox.receipts import newest_receipt, receipts_since
from bot.services import Services
from memory.errors import NoteInvalid, WorkingMemoryTooLarge
from memory.tables.buttons import NewButton, new_id
from memory.tables.items import Item, ItemStore

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


async def show_items(services: Services, here: FeatureTurn, offset: int = 0) -> Reply:
    """A page of items, each with its buttons beside it; the last page where there are no more so
    far. Raises `StoreError`."""
    total, items = await _page(services, here, offset)
    if total and not items:
        offset = (total - 1) // texts.PAGE_SIZE * texts.PAGE_SIZE
        total, items = await _page(services, here, offset)
    text = texts.listed(items, total, offset, await _viewer(services, here, items))
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
            group = new_id()
            sure = _button(texts.say("delete", language), DELETE, which, here, group)
            never = _button(outbox_texts.say("cancel", language), DELETE, {}, here, group, "cancel")
            question = texts.ask_delete(which["kind"], which["key"], language)
            return Reply(question, (sure, never))
        case "memory.correct":
            return await _ask_correction(services, here, which)
        case "memory.receipts":
            return await show_receipts(services, here)
        case "memory.save":
            notice = await _correct(services, here, which, written(here.values, _NEW_VALUE))
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
    return "\n".join(filter(None, (texts.deleted(counts, here.language), line)))


async def _ask_correction(services: Services, here: FeatureTurn, which: Mapping[str, Any]) -> Reply:
    """The item as it is, with a form for its new value."""
    item = await _find(services, here, which)
    if item is None:
        return await _list_after(services, here, which, texts.say("gone-already", here.language))
    group, label = new_id(), texts.say("new-value", here.language)
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
        texts.corrected(old, value, here.language)
        if old
        else texts.say("gone-already", here.language)
    )


async def _list_after(
    services: Services, here: FeatureTurn, which: Mapping[str, Any], notice: str
) -> Reply:
    """The list below what came of a press."""
    left = await show_items(services, here, which.get("offset", 0))
    return replace(left, text=f"{notice}\n\n{left.text}")


async def _viewer(services: Services, here: FeatureTurn, items: tuple[Item, ...]) -> texts.Viewer:
    names = services.people.of(here.context.tenant_key)
    await names.look_up([one for item in items for one in (item.actor_id, item.user_id)])
    return texts.Viewer(
        open_id=here.context.actor_id,
        language=here.language,
        now=services.now(),
        name=names.label,
        applink=applink(services.settings.feishu_domain),
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
    return decision(
        label,
        payload,
        choice,
        group_id=group or new_id(),
        chat_type=here.chat_type,
        language=here.language,
    )
