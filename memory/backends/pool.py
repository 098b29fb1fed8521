"""Connections to Postgres that the tasks of one loop share."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import time
from collections import deque
from collections.abc import Awaitable, Callable

import psycopg
from psycopg.pq import TransactionStatus

from memory.backends.connections import (
    CONNECT_S,
    IDLE_S,
    LIFETIME_S,
    NoConnection,
    ReconnectTimer,
    leads_to_standby,
)
from memory.backends.exchange import AskingConnection

_PATIENCE_S = 0.005  # a call takes about as long
_QUIET_S = 30.0


class Pool:
    """Connections, of which `connect` makes one.

    Callers wait in line, and the next one gets what was given back unbroken. A connection is made
    when somebody waits for one and none is at hand; `memory.backends.connections` says how. With
    `checks` a connection is asked before it is handed out.

    It begins with one connection: a process of Postgres that has planned our functions holds 8 to
    18 MB. There is another one as soon as somebody has waited for longer than a call takes, and one
    less when nobody has to wait any more.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[AskingConnection]],
        *,
        size: int,
        timeout_s: float,
        checks: bool = False,
    ) -> None:
        self._connect = connect
        self._size = size
        self._timeout_s = timeout_s
        self._checks = checks
        self._line = asyncio.Semaphore(1)
        self._places = 1  # as many connections are handed out at most, for now
        self._waited = 0.0  # monotonic seconds: when somebody last had to
        self._returned = 0.0  # and when a connection last came back unbroken
        self._at_hand: list[AskingConnection] = []
        self._reconnecting = ReconnectTimer()
        self._wanted: deque[asyncio.Future[AskingConnection]] = deque()
        self._watching = 0
        self._sound = asyncio.Event()  # a connection was made since the last one was lost
        self._connecting: asyncio.Task[None] | None = None
        self._shrinking: asyncio.TimerHandle | None = None
        self._closed = False

    async def __aenter__(self) -> Pool:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Begins to make the first connection; one attempt, until somebody waits for it."""
        self._begin_connecting()

    def connection(self, timeout: float | None = None) -> BorrowedConnection:
        """A connection while the context lasts. Raises `NoConnection` when none comes back for so
        long; in a line that moves everybody gets one."""
        return BorrowedConnection(self, self._timeout_s if timeout is None else timeout)

    async def take(self, within_s: float) -> AskingConnection:
        """A connection, which `give_back` gets. Raises `NoConnection`."""
        if self._closed:
            raise NoConnection("the pool is closed")
        if not self._line.locked():
            await self._line.acquire()
        else:
            await self._wait(within_s)
        try:
            return await self._usable() or await self._make(within_s)
        except BaseException:
            self._line.release()
            raise

    async def give_back(
        self, connection: AskingConnection, failure: BaseException | None = None
    ) -> None:
        """Ends what `take` began; `failure` is what the last statement ended with."""
        now = time.monotonic()
        if leads_to_standby(failure):
            connection.finish()
            while self._at_hand:
                self._at_hand.pop().finish()
        if connection.pgconn.transaction_status != TransactionStatus.IDLE:
            self._note_loss()
            connection.finish()
        elif self._closed or now - connection.made > LIFETIME_S:
            connection.finish()
        else:
            self._returned = now
            self._keep(connection)
        self._leave_line()

    def lost_since(self, moment: float) -> bool:
        """True if a connection broke or could not be made since `moment` (monotonic seconds)."""
        return self._reconnecting.lost_at >= moment

    async def reachable(self) -> None:
        """Returns when a connection has been made since the last one was lost."""
        self._watching += 1
        try:
            self._begin_connecting()
            await self._sound.wait()
        finally:
            self._watching -= 1

    async def close(self) -> None:
        self._closed = True
        if self._connecting and not self._connecting.done():
            self._connecting.cancel()
            await asyncio.wait([self._connecting])
        if self._shrinking:
            self._shrinking.cancel()
        for waiter in self._wanted:
            if not waiter.done():
                waiter.set_exception(NoConnection("the pool is closed"))
        while self._at_hand:
            self._at_hand.pop().finish()

    async def _wait(self, within_s: float) -> None:
        """For a place in line, or for the moment when there is one more."""
        while True:
            self._waited = time.monotonic()
            grows = self._places < self._size
            try:
                async with asyncio.timeout(min(_PATIENCE_S, within_s) if grows else within_s):
                    await self._line.acquire()
                    return
            except TimeoutError as exc:
                if self._places < self._size:
                    self._places += 1
                    return
                moves = time.monotonic() - self._returned < within_s
                if not (grows or moves):
                    raise NoConnection(f"no connection was free for {within_s:.1f} s") from exc

    def _leave_line(self) -> None:
        if self._places > 1 and time.monotonic() - self._waited > _QUIET_S:
            self._places -= 1
        else:
            self._line.release()

    async def _usable(self) -> AskingConnection | None:
        while self._at_hand:
            connection = self._at_hand.pop()
            try:
                if not connection.closed and (not self._checks or await _answers(connection)):
                    return connection
            except asyncio.CancelledError:
                connection.finish()
                raise
            self._note_loss()  # the server hung up meanwhile
            connection.finish()
        return None

    async def _make(self, within_s: float) -> AskingConnection:
        """The next connection that is made or given back."""
        waiter = asyncio.get_running_loop().create_future()
        self._wanted.append(waiter)
        self._begin_connecting()
        try:
            async with asyncio.timeout(within_s):
                return await asyncio.shield(waiter)
        except BaseException as exc:
            if waiter.done() and not waiter.exception():
                self._keep(waiter.result())  # it came in the moment of giving up
            if isinstance(exc, TimeoutError):
                raise NoConnection(f"no connection could be made in {within_s:.1f} s") from exc
            raise
        finally:
            waiter.cancel()
            with contextlib.suppress(ValueError):
                self._wanted.remove(waiter)

    def _keep(self, connection: AskingConnection) -> None:
        """For whoever waits for it, or for the next one."""
        while self._wanted:
            if not (waiter := self._wanted.popleft()).done():
                waiter.set_result(connection)
                return
        connection.since = time.monotonic()
        self._at_hand.append(connection)
        self._shrink()

    def _note_loss(self) -> None:
        self._reconnecting.note_loss()
        self._sound.clear()

    def _begin_connecting(self) -> None:
        if (self._connecting is None or self._connecting.done()) and not self._closed:
            # no caller's context: what it logs is about no job
            connecting = self._keep_connecting()
            self._connecting = asyncio.create_task(connecting, context=contextvars.Context())

    async def _keep_connecting(self) -> None:
        """Connects until nobody waits for a connection any more."""
        going_on = True
        while going_on:
            await asyncio.sleep(self._reconnecting.wait_s)
            try:
                async with asyncio.timeout(CONNECT_S):
                    connection = await self._connect()
            except (psycopg.Error, OSError) as exc:  # `TimeoutError` is one
                self._note_loss()
                self._reconnecting.note_failure(exc)
            else:
                connection.made = time.monotonic()
                self._reconnecting.note_success()
                self._sound.set()
                self._keep(connection)
            has_waiters = any(not one.done() for one in self._wanted)
            going_on = has_waiters or (self._watching > 0 and not self._sound.is_set())

    def _shrink(self) -> None:
        """Closes what nobody has used for long, but for one; looks again as long as there is."""
        now = time.monotonic()
        while len(self._at_hand) > 1 and now - self._at_hand[0].since >= IDLE_S:
            self._at_hand.pop(0).finish()
        if len(self._at_hand) > 1 and self._shrinking is None:
            self._shrinking = asyncio.get_running_loop().call_later(IDLE_S, self._look_again)

    def _look_again(self) -> None:
        self._shrinking = None
        self._shrink()


async def _answers(connection: AskingConnection) -> bool:
    try:
        await connection.execute("")
    except psycopg.Error:
        return False
    return True


class BorrowedConnection:
    """A connection of a pool while this context lasts."""

    __slots__ = ("_connection", "_pool", "_within_s")

    def __init__(self, pool: Pool, within_s: float) -> None:
        self._pool, self._within_s = pool, within_s

    async def __aenter__(self) -> AskingConnection:
        self._connection = await self._pool.take(self._within_s)
        return self._connection

    async def __aexit__(self, _: object, failure: BaseException | None, __: object) -> None:
        await self._pool.give_back(self._connection, failure)
