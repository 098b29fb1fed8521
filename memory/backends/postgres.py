"""The memory over a direct Postgres connection: same functions, same policies.

Each call is one pipeline (role, claims, function) and so one round trip; the implicit transaction
of the pipeline bounds the role and the claims.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool

from memory.errors import StoreError, StoreUnavailable, from_sqlstate
from memory.scope import AgentMemoryContext

Pool = AsyncConnectionPool[psycopg.AsyncConnection[TupleRow]]

_CANCEL_GRACE_S = 0.25
_AS_ROLE = "select set_config('role', %s, true), set_config('request.jwt.claims', %s, true)"


def connection_pool(database_url: str, *, size: int = 8, timeout_s: float = 5.0) -> Pool:
    """A closed pool; `await pool.open()` first. `timeout_s` bounds the wait for a connection."""
    return AsyncConnectionPool(
        database_url,
        min_size=1,
        max_size=size,
        timeout=timeout_s,
        open=False,
        kwargs={
            "autocommit": True,
            "prepare_threshold": prepare_threshold(database_url),
            "connect_timeout": max(2, round(timeout_s)),
        },
        check=AsyncConnectionPool.check_connection if ":6543" in database_url else None,
    )


def prepare_threshold(database_url: str) -> int | None:
    """None where a transaction pooler (Supabase: port 6543) cannot keep prepared statements."""
    return None if ":6543" in database_url else 5


class PostgresRpc:
    """Calls SQL functions as the person of the turn, or as `service_role` for operators."""

    def __init__(self, pool: Pool, *, timeout_s: float = 5.0) -> None:
        self._pool = pool
        self._timeout_s = timeout_s
        self._statements: dict[tuple[str, ...], bytes] = {}

    async def call(
        self, function: str, params: Mapping[str, object], context: AgentMemoryContext | None
    ) -> Any:
        role = "authenticated" if context else "service_role"
        claims = json.dumps(context.claims()) if context else ""
        try:
            async with self._time_limit():
                return await self._execute(self._statement(function, params), params, role, claims)
        except TimeoutError as exc:
            raise StoreUnavailable(f"{function} took longer than {self._timeout_s} s") from exc
        except psycopg.Error as exc:
            raise _translated(function, exc) from exc

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

    async def _execute(
        self, statement: bytes, params: Mapping[str, object], role: str, claims: str
    ) -> Any:
        async with self._pool.connection() as connection:
            async with connection.pipeline():
                await connection.execute(_AS_ROLE, (role, claims))
                cursor = await connection.execute(statement, params)
            # Fetched after the pipeline: inside it, waiting for the row is a trip of its own.
            row = await cursor.fetchone()
        return row[0] if row else None

    def _statement(self, function: str, params: Mapping[str, object]) -> bytes:
        # As bytes, because psycopg keeps what it made of those and composes an object every time.
        key = (function, *params)
        if key not in self._statements:
            arguments = sql.SQL(", ").join(
                sql.SQL("{} => {}").format(sql.Identifier(name), sql.Placeholder(name))
                for name in params
            )
            call = sql.SQL("select public.{}({})").format(sql.Identifier(function), arguments)
            self._statements[key] = call.as_bytes()
        return self._statements[key]


def _translated(function: str, exc: psycopg.Error) -> StoreError:
    message = exc.diag.message_primary or type(exc).__name__
    if not exc.sqlstate and isinstance(exc, psycopg.OperationalError | psycopg.InterfaceError):
        return StoreUnavailable(f"{function}: {message}")  # the driver's own: no server answered
    return from_sqlstate(exc.sqlstate or "", f"{function}: {message}")
