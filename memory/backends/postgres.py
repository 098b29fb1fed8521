"""The memory over a direct Postgres connection: same functions, same policies.

Each call is one message of several statements (role, claims, function): one round trip, and one
implicit transaction, which bounds the role and the claims. Values are quoted on this side, as libpq
does it, because a message of several statements takes no parameters.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from memory.backends.exchange import AskingConnection
from memory.errors import StoreError, StoreUnavailable, from_sqlstate
from memory.rpc import Statement
from memory.scope import AgentMemoryContext, Sharing
from memory.text import as_json

_CANCEL_GRACE_S = 0.25
_AT_HAND_S = 60.0
_PATIENCE_S = 0.005  # a call takes about as long
_QUIET_S = 30.0
_IDLE_S = 120.0
_LOST_AFTER_S = 3
# not select set_config(…): that is planned each time, a twentieth of what a call costs Postgres
_AS_ROLE = (
    b'set local role %s; set local "request.jwt.claims" = %s; set local statement_timeout = %s; '
)
_AS_OWNER = b"; set local role none; "
_RESULT = 3  # what follows _AS_ROLE, counted from 0
_RESULT_AS_OWNER = 5


class Pool(AsyncConnectionPool[AskingConnection]):
    """A pool that keeps at hand what was given back well.

    The pool itself takes a task, a condition and a timer for each connection it hands out, and
    counts it. Here callers wait in line for a future, and the next one gets what was given back
    unbroken, for a minute; then the pool sees it again, which ends what is old or not needed.

    It begins with one connection: a process of Postgres that has planned our functions holds 8 to
    18 MB. There is another one as soon as somebody has waited for longer than a call takes, and one
    less when nobody has to wait any more.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._line = asyncio.Semaphore(1)
        self._places = 1  # as many connections are handed out at most, for now
        self._waited = 0.0  # monotonic seconds: when somebody last had to
        self._returned = 0.0  # and when a connection last came back unbroken
        self._at_hand: list[AskingConnection] = []
        self._keeps = kwargs.get("check") is None

    def connection(self, timeout: float | None = None) -> Handed:  # type: ignore[override]
        """A connection while the context lasts. Raises `PoolTimeout` when none comes back for so
        long; in a line that moves everybody gets one."""
        return Handed(self, self.timeout if timeout is None else timeout)

    async def take(self, within_s: float) -> AskingConnection:
        """A connection, which `give_back` gets. Raises `PoolTimeout`."""
        if not self._line.locked():
            await self._line.acquire()
        else:
            await self._wait(within_s)
        try:
            while self._at_hand:
                kept = self._at_hand.pop()
                if not kept.closed:
                    return kept
                await self.putconn(kept)  # the server hung up meanwhile
            taken = await self.getconn(within_s)
        except BaseException:
            self._line.release()
            raise
        taken.since = time.monotonic()
        return taken

    async def _wait(self, within_s: float) -> None:
        """For a place in line, or for the moment when there is one more."""
        while True:
            self._waited = time.monotonic()
            grows = self._places < self.max_size
            try:
                async with asyncio.timeout(min(_PATIENCE_S, within_s) if grows else within_s):
                    await self._line.acquire()
                    return
            except TimeoutError as exc:
                if self._places < self.max_size:
                    self._places += 1
                    return
                moves = time.monotonic() - self._returned < within_s
                if not (grows or moves):
                    raise PoolTimeout(f"no connection was free for {within_s:.1f} s") from exc

    async def give_back(self, connection: AskingConnection) -> None:
        """Ends what `take` began."""
        try:
            idle = connection.pgconn.transaction_status == TransactionStatus.IDLE
            self._returned = time.monotonic() if idle else self._returned
            if not (idle and self._keeps) or self.closed:
                await self.putconn(connection)
                return
            self._at_hand.append(connection)
            if time.monotonic() - self._at_hand[0].since > _AT_HAND_S:
                await self.putconn(self._at_hand.pop(0))
        finally:
            self._leave_line()

    def _leave_line(self) -> None:
        if self._places > 1 and time.monotonic() - self._waited > _QUIET_S:
            self._places -= 1
        else:
            self._line.release()

    async def close(self, timeout: float = 5) -> None:  # noqa: ASYNC109  as the pool has it
        while self._at_hand:
            await self.putconn(self._at_hand.pop())
        await super().close(timeout)


class Handed:
    """A connection of a pool while this context lasts."""

    __slots__ = ("_connection", "_pool", "_within_s")

    def __init__(self, pool: Pool, within_s: float) -> None:
        self._pool, self._within_s = pool, within_s

    async def __aenter__(self) -> AskingConnection:
        self._connection = await self._pool.take(self._within_s)
        return self._connection

    async def __aexit__(self, *_: object) -> None:
        await self._pool.give_back(self._connection)


def connection_pool(database_url: str, *, size: int = 8, timeout_s: float = 5.0) -> Pool:
    """A closed pool; `await pool.open()` first. `timeout_s` bounds the wait for a connection."""
    return Pool(
        database_url,
        connection_class=AskingConnection,
        min_size=1,
        max_size=size,
        max_idle=_IDLE_S,
        timeout=timeout_s,
        open=False,
        kwargs={
            "autocommit": True,
            "prepare_threshold": None,  # nothing is prepared: see above
            "client_encoding": "utf8",
            "connect_timeout": max(2, round(timeout_s)),
            **keepalives(_LOST_AFTER_S),
        },
        configure=_notice_lost_clients if has_sessions(database_url) else None,
        check=None if has_sessions(database_url) else AsyncConnectionPool.check_connection,
    )


async def _notice_lost_clients(connection: AskingConnection) -> None:
    await connection.execute(server_keepalives(_LOST_AFTER_S))


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
        args = (role, claims, self._server_limit, *params.values())
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
        args = ("authenticated", claims, limit, *params.values(), *then.params)
        wanted = [_RESULT, _RESULT_AS_OWNER]
        value, of_then = await self._run(function, statement, args, wanted)
        return value, of_then

    async def close(self) -> None:
        await self._pool.close()

    def _connected(self) -> AbstractAsyncContextManager[AskingConnection]:
        """The connection of one call."""
        return self._pool.connection()

    async def _run(
        self, function: str, statement: bytes, args: Sequence[object], wanted: Sequence[int]
    ) -> list[Any]:
        """The first value of each of the `wanted` results, counted from 0."""
        try:
            async with self._connected() as connection, asyncio.timeout(self._timeout_s):
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
