"""Lists, corrects and forgets what is kept of a person: facts, notes, summaries, messages.

Listing uses the person's own token. Correcting and deleting are the service's, because an item
may be of another chat; the SQL functions check the person: the author may do both, the subject
may delete."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from memory.models import FormerValue, Scope
from memory.rpc import Rpc, call_as
from memory.scope import AgentMemoryContext

ItemKind = Literal["fact", "note", "summary"]


@dataclass(frozen=True, slots=True)
class Item:
    """A fact (a key of a working memory) or a note.

    `id` and, of a fact, `key` name it; of a note `key` is its title and `value` its text. `scope`
    "user" is lasting, "chat" of one thread. `actor_id` is its author, `user_id` whom it is about.
    `chat_id` is where it was told, `chat_type` and `chat_name` as far as they are known; it was
    also shared with `shared_chat_id`. `turn_id` is the message it comes from, None: not known.
    `at`: since when, ISO 8601. `before` is the value that a fact had last.
    """

    kind: ItemKind
    id: str
    key: str
    value: Any
    scope: str
    actor_id: str
    user_id: str
    chat_id: str
    shared_chat_id: str | None
    turn_id: str | None
    at: str
    chat_type: str | None = None
    chat_name: str | None = None
    shared_chat_name: str = ""
    before: FormerValue | None = None


@dataclass(frozen=True, slots=True)
class ChangedItem:
    """An item as it was before it was corrected or deleted."""

    kind: ItemKind
    key: str
    value: Any


class ItemStore:
    """Items over the memory's transports."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def list(
        self,
        context: AgentMemoryContext,
        *,
        offset: int = 0,
        limit: int = 50,
        turn_id: str = "",
    ) -> tuple[int, tuple[Item, ...]]:
        """How many there are, and those from `offset` on, newest first, as far as they may be read
        here. Raises `AccessDenied` unless the person asks themselves.

        The turn `turn_id` that shows them keeps no words, once it is over.
        """
        rows = await call_as(
            self._rpc,
            "list_items",
            context,
            p_tenant_key=context.tenant_key,
            p_offset=offset,
            p_limit=limit,
            p_turn_id=turn_id or None,
        )
        return rows["total"], tuple(map(_item_of, rows["items"]))

    async def former(self, context: AgentMemoryContext) -> tuple[FormerValue, ...]:
        """Values that facts about the subject had before those of now, the last first, as far as
        the sender may read them here: of this thread and lasting ones."""
        rows = await call_as(self._rpc, "former_facts", context, p_tenant_key=context.tenant_key)
        return tuple(FormerValue(**row) for row in rows)

    async def find(self, context: AgentMemoryContext, key: str, scope: Scope) -> tuple[str, ...]:
        """The ids of the facts under `key` that the sender may have deleted and that may be read
        here: of this thread, or (scope user) lasting ones."""
        return tuple(
            await call_as(
                self._rpc,
                "find_facts",
                context,
                p_tenant_key=context.tenant_key,
                p_key=key,
                p_scope=scope,
            )
        )

    async def forget(
        self,
        context: AgentMemoryContext,
        kind: ItemKind,
        id: str,
        key: str = "",
        *,
        turn_id: str = "",
    ) -> ChangedItem | None:
        """Deletes one item for good: with what it was made from (of a summary all its messages)
        and what repeats it, as if that had been taken back. None: the sender of `context` has no
        such item.

        The turn `turn_id` that asks for it keeps no words either, once it is over.
        """
        params = {**_item_params(context, kind, id, key), "p_by_turn": turn_id or None}
        return _changed_item(await self._rpc.call("forget_item", params, None))

    async def correct(
        self,
        context: AgentMemoryContext,
        kind: ItemKind,
        id: str,
        key: str = "",
        *,
        value: Any,
        turn_id: str = "",
    ) -> ChangedItem | None:
        """Gives an item of the sender's own another value, a note another text. None: they have no
        such item. Raises `WorkingMemoryTooLarge`, `NoteInvalid` and `TakenBack`."""
        params = {
            **_item_params(context, kind, id, key),
            "p_value": json.dumps(value, ensure_ascii=False),
            "p_turn_id": turn_id or None,
        }
        return _changed_item(await self._rpc.call("correct_item", params, None))


def _item_of(row: Mapping[str, Any]) -> Item:
    before = row["before"]
    return Item(**{**row, "before": FormerValue(**before) if before else None})


def _item_params(
    context: AgentMemoryContext, kind: ItemKind, id: str, key: str
) -> dict[str, object]:
    return {
        "p_kind": kind,
        "p_id": id,
        "p_key": key,
        "p_person": context.actor_id,
        "p_tenant_key": context.tenant_key,
    }


def _changed_item(row: Mapping[str, Any] | None) -> ChangedItem | None:
    return ChangedItem(**row) if row else None


@dataclass(frozen=True, slots=True)
class SaidMessage:
    """A message of a person, at `at`, ISO 8601."""

    message_id: str
    content: str
    at: str


@dataclass(frozen=True, slots=True)
class OthersMessage:
    """What somebody else said in the chat; `author`: their name, as far as it is known."""

    author: str
    content: str


@dataclass(frozen=True, slots=True)
class ForgottenCounts:
    """How many of each were deleted."""

    facts: int
    notes: int
    messages: int
    answers: int


@dataclass(frozen=True, slots=True)
class SameWordsElsewhere:
    """Chats in which a person said the same; "" for one whose name is not known."""

    person: str
    chats: tuple[str, ...]


class SaidMessageStore:
    """What was said, over the memory's transports."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def to_forget(
        self, context: AgentMemoryContext, *, everywhere: bool, turn_id: str
    ) -> tuple[SaidMessage, ...]:
        """What the sender said in this chat, or `everywhere`; the newest first, without the turn
        that asks."""
        params = {
            "p_chat_id": None if everywhere else context.chat_id,
            "p_person": context.actor_id,
            "p_tenant_key": context.tenant_key,
            "p_turn_id": turn_id,
        }
        return tuple(
            SaidMessage(**row) for row in await self._rpc.call("said_to_forget", params, None)
        )

    async def of_others(self, context: AgentMemoryContext) -> tuple[OthersMessage, ...]:
        """What others said in this chat, as far as the sender may read it; the newest first."""
        rows = await self._rpc.call("said_by_others", {}, context)
        return tuple(OthersMessage(**row) for row in rows)

    async def forget(
        self,
        context: AgentMemoryContext,
        items: Sequence[Mapping[str, str]],
        messages: Sequence[str],
        *,
        turn_id: str,
    ) -> ForgottenCounts:
        """Deletes items (kind, id, key) and messages of the sender, with all that was made from
        them. The turn `turn_id` that asks for it keeps no words once it is over."""
        params = {
            "p_items": json.dumps(list(items)),
            "p_messages": json.dumps(list(messages)),
            "p_person": context.actor_id,
            "p_tenant_key": context.tenant_key,
            "p_by_turn": turn_id,
        }
        return ForgottenCounts(**await self._rpc.call("forget_chosen", params, None))

    async def elsewhere(self, messages: Sequence[str]) -> SameWordsElsewhere | None:
        """Where the author of these messages said the same in a chat that they can read."""
        row = await self._rpc.call(
            "said_elsewhere", {"p_messages": json.dumps(list(messages))}, None
        )
        return SameWordsElsewhere(row["person"], tuple(row["chats"])) if row else None

    async def forget_in_chat(self, chat_id: str, open_id: str) -> None:
        """Deletes what was said by and to a person in a chat; their notes stay."""
        params = {"p_chat_id": chat_id, "p_user_id": open_id}
        await self._rpc.call("forget_in_chat", params, None)
