"""What somebody said, as they may have it forgotten in words. For the service.

Methods raise the errors of `memory.errors`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory.rpc import Rpc
from memory.scope import AgentMemoryContext


@dataclass(frozen=True, slots=True)
class Said:
    """A message of a person, at `at`, ISO 8601."""

    message_id: str
    author_id: str
    author: str
    content: str
    at: str


@dataclass(frozen=True, slots=True)
class Gone:
    """How many of each were deleted."""

    facts: int
    notes: int
    messages: int
    answers: int


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Chats in which a person said the same; "" for one whose name is not known."""

    person: str
    chats: tuple[str, ...]


class SaidStore:
    """What was said, over the memory's transports."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def to_forget(
        self, context: AgentMemoryContext, *, everywhere: bool, turn_id: str
    ) -> tuple[Said, ...]:
        """What the sender said in this chat, or `everywhere`, and what others said in it; the
        newest first, without the turn that asks."""
        params = {
            "p_chat_id": None if everywhere else context.chat_id,
            "p_person": context.actor_id,
            "p_tenant_key": context.tenant_key,
            "p_turn_id": turn_id,
        }
        return tuple(Said(**row) for row in await self._rpc.call("said_to_forget", params, None))

    async def forget(
        self,
        context: AgentMemoryContext,
        items: Sequence[Mapping[str, str]],
        messages: Sequence[str],
        *,
        turn_id: str,
    ) -> Gone:
        """Deletes items (kind, id, key) and messages of the sender, with all that was made from
        them. The turn `turn_id` that asks for it keeps no words once it is over."""
        params = {
            "p_items": json.dumps(list(items)),
            "p_messages": json.dumps(list(messages)),
            "p_person": context.actor_id,
            "p_tenant_key": context.tenant_key,
            "p_by_turn": turn_id,
        }
        return Gone(**await self._rpc.call("forget_chosen", params, None))

    async def elsewhere(self, messages: Sequence[str]) -> Elsewhere | None:
        """Where the author of these messages said the same in a chat that they can read."""
        row = await self._rpc.call(
            "said_elsewhere", {"p_messages": json.dumps(list(messages))}, None
        )
        return Elsewhere(row["person"], tuple(row["chats"])) if row else None

    async def forget_in_chat(self, chat_id: str, open_id: str) -> None:
        """Deletes what was said by and to a person in a chat; their notes stay."""
        params = {"p_chat_id": chat_id, "p_user_id": open_id}
        await self._rpc.call("forget_in_chat", params, None)
