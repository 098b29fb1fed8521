"""Digests of a chat: what they are made of, when they come, and that they go with their sources.

Methods raise the errors of `memory.errors`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from memory.rpc import Rpc, call_as
from memory.scope import MAIN_ROOT, AgentMemoryContext, conversation_id
from memory.tables.timers import Plan, Timer, timer_id, timer_of
from memory.text import as_json

MOST = 400


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message of the chat. `at_ms` is ms since epoch; `card`: `content` is a card's markdown."""

    message_id: str
    author: str
    author_id: str | None
    content: str
    at_ms: int
    card: bool


class DigestStore:
    """Digests over the memory's transports."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def material(
        self, context: AgentMemoryContext, *, since: datetime, until: datetime, root: str | None
    ) -> tuple[ChatMessage, ...]:
        """What was said in the chat, or in the thread `root`, as far as it may be read there."""
        rows = await call_as(
            self._rpc,
            "digest_material",
            context,
            p_tenant_key=context.tenant_key,
            p_chat_id=context.chat_id,
            p_root_id=root,
            p_since=since.isoformat(),
            p_until=until.isoformat(),
            p_limit=MOST,
        )
        return tuple(ChatMessage(**row) for row in rows)

    async def gone(self, messages: Iterable[ChatMessage]) -> frozenset[str]:
        """The ids of those of `messages` that must not be told: they were taken back, or their
        author had the bot forget them since."""
        rows = [
            {"message_id": one.message_id, "author_id": one.author_id, "at_ms": one.at_ms}
            for one in messages
        ]
        params = {"p_messages": as_json(rows)}
        return frozenset(await self._rpc.call("messages_gone", params, None) if rows else ())

    async def schedule(self, context: AgentMemoryContext) -> Timer | None:
        row = await call_as(
            self._rpc,
            "get_digest",
            context,
            p_tenant_key=context.tenant_key,
            p_chat_id=context.chat_id,
        )
        return timer_of(row) if row else None

    async def set_schedule(
        self, context: AgentMemoryContext, turn_id: str, plan: Plan | None
    ) -> bool:
        """In place of any other; None: no more. Returns whether there was another. Raises
        `AccessDenied` unless the sender manages the chat."""
        params = {
            "p_conversation_id": conversation_id(context.chat_id, MAIN_ROOT),
            "p_tenant_key": context.tenant_key,
            "p_chat_id": context.chat_id,
            "p_chat_type": context.chat_type or "group",
            "p_person": context.actor_id,
            "p_turn_id": turn_id,
            "p_timer_id": timer_id(turn_id, plan) if plan else "",
            "p_timer": plan.row() if plan else None,
        }
        return bool(await self._rpc.call("set_digest", params, None))

    async def keep_sources(
        self, context: AgentMemoryContext, turn_id: str, sources: Iterable[ChatMessage]
    ) -> bool:
        """Before the digest is stored. False: one was taken back meanwhile, so it must not be."""
        rows = [{"message_id": one.message_id, "author_id": one.author_id} for one in sources]
        params = {
            "p_turn_id": turn_id,
            "p_chat_id": context.chat_id,
            "p_tenant_key": context.tenant_key,
            "p_sources": json.dumps(rows),
        }
        return bool(await self._rpc.call("keep_digest_sources", params, None))
