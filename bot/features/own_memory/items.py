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
from bot.outbox import texts as outbox_texts
from bot.outbox.buttons import Decision, Reply, decision
from bot.services import Services
from memory.errors import NoteInvalid, StoreUnavailable, WorkingMemoryTooLarge
from memory.models import OpenTurn
from memory.tables.buttons import NewButton, new_id
from memory.tables.items import Item, ItemStore

PAGE, ASK_DELETE, DELETE, CORRECT = (
    "memory.page",
    "memory.ask_delete",
    "memory.delete",
    "memory.correct",
)
_SHOWN = 5


async def show_items(services: Services, here: FeatureTurn, offset: int = 0) -> Reply:
    """A page of items with their buttons. Raises `StoreError`."""
    total, items = await ItemStore(services.rpc).list(
        here.context, offset=offset, limit=_SHOWN, turn_id=here.turn_id
    )
    text = texts.listed(items, total, offset, await _viewer(services, here, items))
    buttons = [
        button
        for number, item in enumerate(items, offset + 1)
        for button in _buttons_of(number, item, here)
    ]
    if offset:
        before = {"offset": max(0, offset - _SHOWN)}
        buttons.append(_button(texts.say("previous-page", here.language), PAGE, before, here))
    if offset + len(items) < total:
        after = {"offset": offset + len(items)}
        buttons.append(_button(texts.say("next-page", here.language), PAGE, after, here))
    return Reply(text, tuple(buttons), forgets=True)


async def press_item(services: Services, here: PressTurn) -> Reply:
    """What a button of such a card does. Deleting again after a crash finds nothing to delete, and
    says so. Raises `StoreError`."""
    language, payload = here.language, here.press.payload
    which = payload["arguments"]
    match payload["tool"]:
        case "memory.page":
            return await show_items(services, here, int(which["offset"]))
        case "memory.ask_delete":
            group = new_id()
            sure = _button(texts.say("delete", language), DELETE, which, here, group)
            never = _button(outbox_texts.say("cancel", language), DELETE, {}, here, group, "cancel")
            return Reply(texts.ask_delete(which["key"], language), (sure, never))
        case "memory.correct":
            # the record by which the next message is known for the new value
            asked = {"name": CORRECT, "arguments": which, "result": "", "ok": True, "ms": 0}
            return Reply(texts.ask_correct(which["key"], language), tool_calls=(asked,))
        case _:
            gone = await ItemStore(services.rpc).forget(
                here.context, which["kind"], which["id"], which["key"], turn_id=here.turn_id
            )
            receipt = texts.deleted(gone, language) if gone else texts.say("gone-already", language)
            left = await show_items(services, here)  # the list with the item is withdrawn
            return replace(left, text=f"{receipt}\n\n{left.text}")


def awaited(opened: OpenTurn, actor_id: str) -> Mapping[str, Any] | None:
    """The item for which the bot has just asked the sender for another value, if it has."""
    for message in reversed(opened.history[:-1]):
        calls = [call for call in message.tool_calls if call["name"] == CORRECT]
        mine = message.role == "assistant" and message.actor_id == actor_id
        return calls[-1]["arguments"] if mine and calls else None
    return None


async def correct_item(
    services: Services, here: FeatureTurn, which: Mapping[str, Any], value: str
) -> Reply:
    """Gives the item the value that the person wrote."""
    language = here.language
    if texts.cancels(value):
        return Reply(texts.say("kept-as-it-was", language))
    try:
        old = await ItemStore(services.rpc).correct(
            here.context,
            which["kind"],
            which["id"],
            which["key"],
            value=value.strip(),
            turn_id=here.turn_id,
        )
    except (NoteInvalid, WorkingMemoryTooLarge) as exc:
        return Reply(str(exc))
    except StoreUnavailable:
        return Reply(texts.say("not-now", language))
    if old is None:
        return Reply(texts.say("gone-already", language))
    return Reply(texts.corrected(old, value.strip(), language))


async def _viewer(services: Services, here: FeatureTurn, items: tuple[Item, ...]) -> texts.Viewer:
    names = services.people.of(here.context.tenant_key)
    await names.look_up([one for item in items for one in (item.actor_id, item.user_id)])
    return texts.Viewer(
        open_id=here.context.actor_id,
        language=here.language,
        zone=services.settings.zone,
        name=names.label,
        applink=texts.applink(services.settings.feishu_domain),
    )


def _buttons_of(number: int, item: Item, here: FeatureTurn) -> tuple[NewButton, ...]:
    """The author corrects and deletes, the subject deletes."""
    which = {"kind": item.kind, "id": item.id, "key": item.key}
    delete = _button(f"{texts.say('delete', here.language)} {number}", ASK_DELETE, which, here)
    if item.actor_id != here.context.actor_id:
        return (delete,)
    correct = _button(f"{texts.say('correct', here.language)} {number}", CORRECT, which, here)
    return (correct, delete)


def _button(
    label: str,
    tool: str,
    arguments: Mapping[str, Any],
    here: FeatureTurn,
    group: str = "",
    choice: Decision = "confirm",
) -> NewButton:
    payload = {"tool": tool, "arguments": dict(arguments), "description": ""}
    if here.beside:
        payload["beside"] = here.beside
    return decision(
        label,
        payload,
        choice,
        group_id=group or new_id(),
        chat_type=here.chat_type,
        language=here.language,
    )
