"""The memory over a direct Postgres connection: same functions, same policies.

Each call is one message of several statements (role, claims, function): one round trip, and one
implicit transaction, which bounds the role and the claims. Values are quoted on this side, as libpq
does it, because a message of several statements takes no parameters.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import psycopg
from psycopg import sql
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from memory.backends.exchange import Connection
from memory.errors import StoreError, StoreUnavailable, from_sqlstate
from memory.rpc import Statement
from memory.scope import AgentMemoryContext, Sharing

_CANCEL_GRACE_S = 0.25
_AS_ROLE = (
    b"select set_config('role', %s, true), set_config('request.jwt.claims', %s, true),"
    b" set_config('statement_timeout', %s, true); "
)
_AS_OWNER = b"; select set_config('role', 'none', true); "


class Pool(AsyncConnectionPool[Connection]):
    """A pool whose callers wait in line for a connection, which costs a future; waiting in the
    pool itself costs a task, a condition and a timer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._line = asyncio.Semaphore(self.max_size)

    @asynccontextmanager
    async def connection(
        self,
        timeout: float | None = None,  # noqa: ASYNC109  as the pool has it
    ) -> AsyncIterator[Connection]:
        """Raises `PoolTimeout`."""
        limit_s = self.timeout if timeout is None else timeout
        if not self._line.locked():
            await self._line.acquire()
        else:
            try:
                async with asyncio.timeout(limit_s):
                    await self._line.acquire()
            except TimeoutError as exc:
                raise PoolTimeout(f"no connection was free for {limit_s:.1f} s") from exc
        try:
            async with super().connection(timeout) as connection:
                yield connection
        finally:
            self._line.release()


def connection_pool(database_url: str, *, size: int = 8, timeout_s: float = 5.0) -> Pool:
    """A closed pool; `await pool.open()` first. `timeout_s` bounds the wait for a connection."""
    return Pool(
        database_url,
        connection_class=Connection,
        min_size=1,
        max_size=size,
        timeout=timeout_s,
        open=False,
        kwargs={
            "autocommit": True,
            "prepare_threshold": None,  # nothing is prepared: see above
            "client_encoding": "utf8",
            "connect_timeout": max(2, round(timeout_s)),
        },
        check=None if has_sessions(database_url) else AsyncConnectionPool.check_connection,
    )


def has_sessions(database_url: str) -> bool:
    """Whether a connection is one session; through a transaction pooler (Supabase: port 6543) each
    transaction may be another one."""
    return ":6543" not in database_url


def prepare_threshold(database_url: str) -> int | None:
    """None where a transaction pooler (Supabase: port 6543) cannot keep prepared statements."""
    return 5 if has_sessions(database_url) else None


class PostgresRpc:
    """Calls SQL functions as the person of the turn, or as `service_role` for operators."""

    AS_ROLE = _AS_ROLE

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
        claims = json.dumps(context.claims(self._sharing)) if context else ""
        statement = self._statement(function, params)
        args = (role, claims, self._server_limit, *params.values())
        [value] = await self._run(function, statement, args, [1])
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
        claims = json.dumps(context.claims(self._sharing))
        limit = self._server_limit
        args = ("authenticated", claims, limit, *params.values(), *then.params)
        value, of_then = await self._run(function, statement, args, [1, 3])
        return value, of_then

    async def close(self) -> None:
        await self._pool.close()

    @asynccontextmanager
    async def _time_limit(self) -> AsyncIterator[None]:
        """Cancels the query, and a moment later gives up a server that does not even do that.

        On the first cancellation psycopg asks the server to stop and waits up to 10 s for it; on
        the second it closes the connection.
        """
        limit = self._timeout_s
        async with asyncio.timeout(limit + _CANCEL_GRACE_S), asyncio.timeout(limit):
            yield

    def _connected(self) -> AbstractAsyncContextManager[Connection]:
        """The connection of one call."""
        return self._pool.connection()

    async def _run(
        self, function: str, statement: bytes, args: Sequence[object], wanted: Sequence[int]
    ) -> list[Any]:
        """The first value of each of the `wanted` results, counted from 0."""
        try:
            async with self._time_limit(), self._connected() as connection:
                return await connection.ask_each(statement, args, wanted)
        except TimeoutError as exc:
            raise StoreUnavailable(f"{function} took longer than {self._timeout_s} s") from exc
        except psycopg.Error as exc:
            raise _translated(function, exc) from exc

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


def _translated(function: str, exc: psycopg.Error) -> StoreError:
    message = exc.diag.message_primary or type(exc).__name__
    if not exc.sqlstate and isinstance(exc, psycopg.OperationalError | psycopg.InterfaceError):
        return StoreUnavailable(f"{function}: {message}")  # the driver's own: no server answered
    return from_sqlstate(exc.sqlstate or "", f"{function}: {message}")
