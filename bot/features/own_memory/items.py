"""What is kept of a person, one item at a time: shown, corrected, deleted. Only to them alone.

A card's buttons carry which item; a list is not stored a second time, and neither is what asks for
a deletion: such a turn keeps no words once it is over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bot.features.own_memory import texts
from bot.outbox import texts as outbox_texts
from bot.outbox.buttons import Decision, Reply, decision
from bot.services import Services
from bot.text.languages import Language
from memory.errors import NoteInvalid, StoreUnavailable, WorkingMemoryTooLarge
from memory.kept.buttons import NewButton, new_id
from memory.kept.items import Item, ItemStore
from memory.models import OpenTurn
from memory.scope import AgentMemoryContext, ChatType

PAGE, ASK_DELETE, DELETE, CORRECT = (
    "memory.page",
    "memory.ask_delete",
    "memory.delete",
    "memory.correct",
)
PRESSES = frozenset({PAGE, ASK_DELETE, DELETE, CORRECT})
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Looking:
    """A turn in which a person looks at what is kept of them. `beside`: the group beside which the
    card is to stand, if it does."""

    context: AgentMemoryContext
    chat_type: ChatType
    language: Language
    turn_id: str
    beside: str = ""


async def show_items(services: Services, looking: Looking, offset: int = 0) -> Reply:
    """A page of items with their buttons. Raises `StoreError`."""
    total, items = await ItemStore(services.rpc).list(
        looking.context, offset=offset, limit=_SHOWN, turn_id=looking.turn_id
    )
    text = texts.listed(items, total, offset, await _viewer(services, looking, items))
    buttons = [
        button
        for number, item in enumerate(items, offset + 1)
        for button in _buttons_of(number, item, looking)
    ]
    if offset:
        before = {"offset": max(0, offset - _SHOWN)}
        buttons.append(_button(texts.say("previous-page", looking.language), PAGE, before, looking))
    if offset + len(items) < total:
        after = {"offset": offset + len(items)}
        buttons.append(_button(texts.say("next-page", looking.language), PAGE, after, looking))
    return Reply(text, tuple(buttons), forgets=True)


async def press_item(services: Services, looking: Looking, payload: Mapping[str, Any]) -> Reply:
    """What a button of such a card does. Raises `StoreError`."""
    language, which = looking.language, payload["arguments"]
    match payload["tool"]:
        case "memory.page":
            return await show_items(services, looking, int(which["offset"]))
        case "memory.ask_delete":
            group = new_id()
            sure = _button(texts.say("delete", language), DELETE, which, looking, group)
            never = _button(
                outbox_texts.say("cancel", language), DELETE, {}, looking, group, "cancel"
            )
            return Reply(texts.ask_delete(which["key"], language), (sure, never))
        case "memory.correct":
            # the record by which the next message is known for the new value
            asked = {"name": CORRECT, "arguments": which, "result": "", "ok": True, "ms": 0}
            return Reply(texts.ask_correct(which["key"], language), tool_calls=(asked,))
        case _:
            gone = await ItemStore(services.rpc).forget(
                looking.context, which["kind"], which["id"], which["key"], turn_id=looking.turn_id
            )
            receipt = texts.deleted(gone, language) if gone else texts.say("gone-already", language)
            left = await show_items(services, looking)  # the list with the item is withdrawn
            return replace(left, text=f"{receipt}\n\n{left.text}")


def awaited(opened: OpenTurn, actor_id: str) -> Mapping[str, Any] | None:
    """The item for which the bot has just asked the sender for another value, if it has."""
    for message in reversed(opened.history[:-1]):
        calls = [call for call in message.tool_calls if call["name"] == CORRECT]
        mine = message.role == "assistant" and message.actor_id == actor_id
        return calls[-1]["arguments"] if mine and calls else None
    return None


async def correct_item(
    services: Services, looking: Looking, which: Mapping[str, Any], value: str
) -> Reply:
    """Gives the item the value that the person wrote."""
    language = looking.language
    if texts.cancels(value):
        return Reply(texts.say("kept-as-it-was", language))
    try:
        old = await ItemStore(services.rpc).correct(
            looking.context,
            which["kind"],
            which["id"],
            which["key"],
            value=value.strip(),
            turn_id=looking.turn_id,
        )
    except (NoteInvalid, WorkingMemoryTooLarge) as exc:
        return Reply(str(exc))
    except StoreUnavailable:
        return Reply(texts.say("not-now", language))
    if old is None:
        return Reply(texts.say("gone-already", language))
    return Reply(texts.corrected(old, value.strip(), language))


async def _viewer(services: Services, looking: Looking, items: tuple[Item, ...]) -> texts.Viewer:
    names = services.people.of(looking.context.tenant_key)
    await names.look_up([one for item in items for one in (item.actor_id, item.user_id)])
    return texts.Viewer(
        open_id=looking.context.actor_id,
        language=looking.language,
        zone=services.settings.zone,
        name=names.label,
        applink=texts.applink(services.settings.feishu_domain),
    )


def _buttons_of(number: int, item: Item, looking: Looking) -> tuple[NewButton, ...]:
    """The author corrects and deletes, the subject deletes."""
    which = {"kind": item.kind, "id": item.id, "key": item.key}
    delete = _button(
        f"{texts.say('delete', looking.language)} {number}", ASK_DELETE, which, looking
    )
    if item.actor_id != looking.context.actor_id:
        return (delete,)
    correct = _button(f"{texts.say('correct', looking.language)} {number}", CORRECT, which, looking)
    return (correct, delete)


def _button(
    label: str,
    tool: str,
    arguments: Mapping[str, Any],
    looking: Looking,
    group: str = "",
    choice: Decision = "confirm",
) -> NewButton:
    payload = {"tool": tool, "arguments": dict(arguments), "description": ""}
    if looking.beside:
        payload["beside"] = looking.beside
    return decision(
        label,
        payload,
        choice,
        group_id=group or new_id(),
        chat_type=looking.chat_type,
        language=looking.language,
    )
