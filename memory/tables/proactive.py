"""Proactive answers: questions that wait for somebody to answer, and whether the bot may.

All but `said_about` is the service's. Methods raise the errors of `memory.errors`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal, cast

from memory.rpc import Rpc, call_as
from memory.scope import AgentMemoryContext

May = Literal["claimed", "free", "no"]
_MOST_STATEMENTS = 20


class ProactiveStore:
    """What a chat's wish for proactive answers needs, over the memory's transports. `message_id` is
    that of the question."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def wait(
        self, context: AgentMemoryContext, message_id: str, text: str, asked_ms: int, due_ms: int
    ) -> None:
        """A question of the context's actor waits until `due_ms`, where its chat wants that."""
        asked_at = datetime.fromtimestamp(asked_ms / 1000, UTC)
        params = {
            "p_conversation_id": context.conversation_id,
            "p_tenant_key": context.tenant_key,
            "p_chat_id": context.chat_id,
            "p_root_id": context.root_id,
            "p_person": context.actor_id,
            "p_message_id": message_id,
            "p_content": text,
            "p_asked_at": f"{asked_at:%Y-%m-%dT%H:%M:%S}",
            "p_due_ms": due_ms,
        }
        await self._rpc.call("wait_for_answer", params, None)

    async def may_answer(
        self,
        context: AgentMemoryContext,
        message_id: str,
        *,
        since: datetime,
        most: int,
        claim: bool,
    ) -> May:
        """Whether the bot may answer: `claimed` before (with `claim`: from now on), of which there
        are at most `most` in the chat since `since`."""
        params = {
            "p_chat_id": context.chat_id,
            "p_tenant_key": context.tenant_key,
            "p_message_id": message_id,
            "p_since": since.isoformat(),
            "p_most": most,
            "p_claim": claim,
        }
        return cast(May, await self._rpc.call("may_answer_unasked", params, None))

    async def leave(self, context: AgentMemoryContext, message_id: str) -> None:
        """There was nothing to say after all."""
        params = {
            "p_chat_id": context.chat_id,
            "p_tenant_key": context.tenant_key,
            "p_message_id": message_id,
        }
        await self._rpc.call("leave_unanswered", params, None)

    async def stop(self, context: AgentMemoryContext) -> bool:
        """No more of it in the chat of the context; returns whether it was on."""
        params = {"p_chat_id": context.chat_id, "p_tenant_key": context.tenant_key}
        return bool(await self._rpc.call("stop_proactive", params, None))

    async def said_about(self, context: AgentMemoryContext, question: str) -> tuple[str, ...]:
        """What people told the bot in this chat that has most of the question, newest first."""
        rows = await call_as(
            self._rpc,
            "said_about",
            context,
            p_tenant_key=context.tenant_key,
            p_chat_id=context.chat_id,
            p_query=question,
            p_limit=_MOST_STATEMENTS,
        )
        return tuple(row["content"] for row in rows)
