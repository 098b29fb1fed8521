"""Calls the memory's SQL functions over a direct Postgres connection.

Each call is one message of several statements (role, claims, function): one round trip and one
implicit transaction. `UndoneRpc` and `RehearsalRpc` roll back what they did; a rehearsal first
rewinds the working memory to a given time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import Any

import psycopg
from psycopg import sql

from memory.backends.connections import has_sessions
from memory.backends.exchange import AskingConnection
from memory.backends.pool import Pool
from memory.errors import StoreError, StoreUnavailable, from_sqlstate
from memory.migrations import SCHEMA
from memory.rpc import Statement
from memory.scope import AgentMemoryContext, Sharing
from memory.text import as_json, storable_value

_CANCEL_GRACE_S = 0.25
_LOST_AFTER_S = 3

# not select set_config(…): that is planned each time, a twentieth of what a call costs Postgres
_AS_ROLE = (
    b'set local role %s; set local "request.jwt.claims" = %s; set local statement_timeout = %s; '
)
_AS_OWNER = b"; set local role none; "
_RESULT = 3  # what follows _AS_ROLE, counted from 0
_RESULT_AS_OWNER = 5

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


def connection_pool(database_url: str, *, size: int = 8, timeout_s: float = 5.0) -> Pool:
    """A closed pool; `await pool.open()` first. `timeout_s` bounds the wait for a connection."""
    sessions = has_sessions(database_url)

    async def connect() -> AskingConnection:
        connection = await AskingConnection.connect(
            database_url,
            autocommit=True,
            prepare_threshold=None,  # nothing is prepared: see above
            client_encoding="utf8",
            **keepalives(_LOST_AFTER_S),
        )
        try:
            if sessions:
                await connection.execute(server_keepalives(_LOST_AFTER_S))
        except BaseException:
            connection.finish()
            raise
        return connection

    return Pool(connect, size=size, timeout_s=timeout_s, checks=not sessions)


def keepalives(lost_after_s: int) -> dict[str, Any]:
    """Of a new connection: this side gives it up when the network has lost it for so long."""
    return {
        "keepalives_idle": 1,
        "keepalives_interval": 1,
        "keepalives_count": lost_after_s - 1,
        "tcp_user_timeout": lost_after_s * 1000,
    }


def server_keepalives(lost_after_s: int) -> bytes:
    """The statement after which the server does the same. By itself it waits for hours, and keeps
    the locks of a machine that was cut off."""
    return (
        "set tcp_keepalives_idle = 1; set tcp_keepalives_interval = 1; "
        f"set tcp_keepalives_count = {lost_after_s - 1}; "
        f"set tcp_user_timeout = {lost_after_s * 1000}"
    ).encode()


class PostgresRpc:
    """Calls SQL functions as the person of the turn, or as `service_role` for operators."""

    AS_ROLE = _AS_ROLE
    RESULT = _RESULT

    def __init__(self, pool: Pool, *, timeout_s: float = 5.0, sharing: Sharing = "chat") -> None:
        self._pool = pool
        self._sharing: Sharing = sharing
        self._timeout_s = timeout_s
        # for whoever is killed before they can cancel; counted for each statement of a message
        self._server_limit = f"{round((timeout_s + _CANCEL_GRACE_S) * 1000)}ms"
        self._statements: dict[tuple[str, ...], bytes] = {}

    async def call(
        self, function: str, params: Mapping[str, object], context: AgentMemoryContext | None
    ) -> Any:
        role = "authenticated" if context else "service_role"
        claims = as_json(context.claims(self._sharing)) if context else ""
        statement = self._statement(function, params)
        args = (role, claims, self._server_limit, *storable_value(tuple(params.values())))
        [value] = await self._run(function, statement, args, [_RESULT])
        return value

    async def call_and(
        self,
        function: str,
        params: Mapping[str, object],
        context: AgentMemoryContext,
        then: Statement,
    ) -> tuple[Any, Any]:
        """As `memory.rpc.JoiningRpc` says."""
        statement = self._statement(function, params) + _AS_OWNER + then.sql.encode()
        claims = as_json(context.claims(self._sharing))
        limit = self._server_limit
        values = storable_value(tuple(params.values()))
        args = ("authenticated", claims, limit, *values, *then.params)
        result_indexes = [_RESULT, _RESULT_AS_OWNER]
        value, of_then = await self._run(function, statement, args, result_indexes)
        return value, of_then

    async def close(self) -> None:
        await self._pool.close()

    def _connected(self) -> AbstractAsyncContextManager[AskingConnection]:
        """The connection of one call."""
        return self._pool.connection()

    async def _run(
        self, function: str, statement: bytes, args: Sequence[object], result_indexes: Sequence[int]
    ) -> list[Any]:
        """The first value of each of the `result_indexes` results, counted from 0."""
        try:
            async with self._connected() as connection, asyncio.timeout(self._timeout_s):
                return await connection.ask_each(statement, args, result_indexes)
        except TimeoutError as exc:
            raise StoreUnavailable(f"{function} took longer than {self._timeout_s} s") from exc
        except psycopg.Error as exc:
            raise _store_error(function, exc) from exc

    def _statement(self, function: str, params: Mapping[str, object]) -> bytes:
        key = (function, *params)
        if key not in self._statements:
            arguments = sql.SQL(", ").join(
                sql.SQL("{} => {}").format(sql.Identifier(name), sql.Placeholder())
                for name in params
            )
            call = sql.SQL("select public.{}({})").format(sql.Identifier(function), arguments)
            self._statements[key] = _AS_ROLE + call.as_bytes()
        return self._statements[key]


def _store_error(function: str, exc: psycopg.Error) -> StoreError:
    message = exc.diag.message_primary or type(exc).__name__
    if not exc.sqlstate and isinstance(exc, psycopg.OperationalError | psycopg.InterfaceError):
        return StoreUnavailable(f"{function}: {message}")  # the driver's own: no server answered
    return from_sqlstate(exc.sqlstate or "", f"{function}: {message}")


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
