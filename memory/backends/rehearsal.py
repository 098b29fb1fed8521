"""Calls of the memory of which nothing stays.

For looking and trying the memory is as it was at a time: every call is a transaction of its own
that is rolled back, after the working memory was taken back to that time in it. Tools therefore
answer as they would, and change nothing.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from memory.backends.exchange import AskingConnection
from memory.backends.pool import Pool
from memory.backends.postgres import PostgresRpc
from memory.migrations import SCHEMA
from memory.scope import AgentMemoryContext, Sharing

_TIMEOUT_S = 10.0
_REWIND = f"select {SCHEMA}.rewind_working_memory(%s, %s, %s)".encode()
_MESSAGES = b"select bot_private.messages_told(%s::bigint[], %s)"
_TALK = b"""
select coalesce(jsonb_agg(jsonb_build_object(
  'author', t.author, 'author_id', t.author_id, 'content', t.content, 'timestamp', t.timestamp,
  'is_bot', t.is_bot, 'message_id', t.message_id, 'root_id', t.root_id, 'ours', t.ours)
  order by t.timestamp, t.message_id), '[]')
from public.chat_transcript t where t.chat_id = %s and t.message_id = any (%s)
"""
_SUMMARY = b"""
select jsonb_build_object('content', s.content, 'version', s.version, 'messages', s.messages,
  'source', bot_private.thread_source(s.conversation_id, s.user_id))
from public.agent_summaries s
where s.conversation_id = %s and s.user_id = bot_private.summary_of(%s) and s.tenant_key = %s
"""


class UndoneRpc(PostgresRpc):
    """Calls of one connection that see what those before them did, and are all undone at the end.

    Afterwards Postgres has the plans of what was called there: it keeps them by connection.
    """

    def __init__(self, pool: Pool, *, sharing: Sharing = "chat") -> None:
        super().__init__(pool, timeout_s=_TIMEOUT_S, sharing=sharing)
        self._connection: AskingConnection | None = None

    @asynccontextmanager
    async def undone(self) -> AsyncIterator[None]:
        """Calls are made within this context."""
        async with (
            self._pool.connection() as connection,
            connection.transaction(force_rollback=True),
        ):
            self._connection = connection
            yield

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[AskingConnection]:
        if self._connection is None:
            raise RuntimeError("UndoneRpc calls within its context undone() only")
        yield self._connection


class RehearsalRpc(PostgresRpc):
    """The memory of one turn, `context`, as it was at `at`; with the rights of that turn."""

    def __init__(
        self, pool: Pool, context: AgentMemoryContext, at: datetime, *, sharing: Sharing = "chat"
    ) -> None:
        super().__init__(pool, timeout_s=_TIMEOUT_S, sharing=sharing)
        self._of = context
        self._at = at

    async def messages(self, ids: Sequence[int]) -> list[dict[str, Any]]:
        """Stored messages by their ids, those that are still there and may be read."""
        rows: list[dict[str, Any]] = await self._look(_MESSAGES, list(ids), self._of.actor_id)
        return rows

    async def talk(self, message_ids: Sequence[str]) -> list[dict[str, Any]]:
        """What was said in the chat without the bot, as far as it is still there."""
        rows: list[dict[str, Any]] = await self._look(_TALK, self._of.chat_id, list(message_ids))
        return rows

    async def summary(self) -> dict[str, Any] | None:
        """The summary of the conversation as it is today."""
        of = self._of
        row: dict[str, Any] | None = await self._look(
            _SUMMARY, of.conversation_id, of.user_id, of.tenant_key
        )
        return row

    async def _look(self, query: bytes, *args: object) -> Any:
        claims = json.dumps(self._of.claims(self._sharing))
        query_args = ("authenticated", claims, self._server_limit, *args)
        [value] = await self._run("look", self.AS_ROLE + query, query_args, [self.RESULT])
        return value

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[AskingConnection]:
        async with (
            self._pool.connection() as connection,
            connection.transaction(force_rollback=True),
        ):
            of = (self._of.user_id, self._of.conversation_id, self._at)
            await connection.ask(_REWIND, of)
            yield connection
