"""Connections to Postgres that threads share.

A connection is made when a thread waits for one, by a thread of the pool's own that ends when
nobody waits any more: a server that hangs keeps no caller beyond its deadline.
"""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg

from memory.backends.reconnecting import IDLE_S, LIFETIME_S, NoConnection, Reconnecting
from memory.deadlines import DeadlineConnection


class ThreadPool:
    """At most `size` connections, which `connect` makes."""

    def __init__(self, connect: Callable[[], DeadlineConnection], *, size: int) -> None:
        self._connect = connect
        self._size = size
        self._changed = threading.Condition()
        self._idle: list[DeadlineConnection] = []
        self._count = 0  # idle or in use
        self._waiting = 0
        self._connecting = self._closed = False
        self._shrinking: threading.Timer | None = None
        self._reconnecting = Reconnecting()

    def open(self) -> None:
        """Makes the first connection in the background; one attempt."""
        with self._changed:
            self._begin_connecting()

    @contextmanager
    def connection(self, until: float) -> Iterator[DeadlineConnection]:
        """A connection for the block. Raises `NoConnection` at `until` (monotonic seconds)."""
        connection = self.take(until)
        try:
            yield connection
        finally:
            self.give_back(connection)

    def take(self, until: float) -> DeadlineConnection:
        """A connection, which the caller gives back. Raises `NoConnection`."""
        with self._changed:
            self._waiting += 1
            try:
                while (connection := self._usable()) is None:
                    left_s = until - time.monotonic()
                    if left_s <= 0 or self._closed:
                        raise NoConnection("no connection was free in time")
                    self._begin_connecting()
                    self._changed.wait(left_s)
            finally:
                self._waiting -= 1
            return connection

    def take_idle(self) -> DeadlineConnection | None:
        """A connection that nobody uses, without waiting."""
        with self._changed:
            return self._usable()

    def give_back(self, connection: DeadlineConnection) -> None:
        now = time.monotonic()
        idle = connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE
        with self._changed:
            if not idle:
                self._reconnecting.lost()
            if idle and not self._closed and now - connection.made < LIFETIME_S:
                connection.since = now
                self._idle.append(connection)
            else:
                self._drop(connection)
            self._shrink_later()
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            while self._idle:
                self._drop(self._idle.pop())
            if self._shrinking:
                self._shrinking.cancel()
            self._changed.notify_all()

    def _usable(self) -> DeadlineConnection | None:
        while self._idle:
            connection = self._idle.pop()
            if not _has_ended(connection):
                return connection
            self._reconnecting.lost()
            self._drop(connection)
        return None

    def _drop(self, connection: DeadlineConnection) -> None:
        self._count -= 1
        connection.close()

    # Connecting. `_changed` is held where nothing else is said.

    def _begin_connecting(self) -> None:
        if not self._connecting and self._count < self._size and not self._closed:
            self._connecting = True
            threading.Thread(target=self._keep_connecting, name="connecting", daemon=True).start()

    def _keep_connecting(self) -> None:
        """Connects until nobody waits or the pool is full. `_changed` is not held."""
        going_on = True
        while going_on:
            time.sleep(self._reconnecting.wait_s)
            is_connected = self._attempted()
            with self._changed:
                if is_connected:
                    self._count += 1
                    self._idle.append(is_connected)
                    self._changed.notify()
                missing = self._waiting > len(self._idle)
                going_on = missing and self._count < self._size and not self._closed
                self._connecting = going_on
                if self._closed:
                    while self._idle:
                        self._drop(self._idle.pop())

    def _attempted(self) -> DeadlineConnection | None:
        try:
            connection = self._connect()
        except (psycopg.Error, OSError) as exc:
            self._reconnecting.failed(exc)
            return None
        self._reconnecting.succeeded()
        connection.made = connection.since = time.monotonic()
        return connection

    # Shrinking

    def _shrink_later(self) -> None:
        if self._shrinking is None and len(self._idle) > 1 and not self._closed:
            self._shrinking = threading.Timer(IDLE_S, self._shrink)
            self._shrinking.daemon = True
            self._shrinking.start()

    def _shrink(self) -> None:
        """Closes what nobody has used for long, but for one. `_changed` is not held."""
        with self._changed:
            self._shrinking = None
            while len(self._idle) > 1 and time.monotonic() - self._idle[0].since >= IDLE_S:
                self._drop(self._idle.pop(0))
            self._shrink_later()


def _has_ended(connection: DeadlineConnection) -> bool:
    """True if the server has hung up: what it said before that is readable, and then the end is."""
    looking = select.poll()
    try:
        looking.register(connection.fileno(), select.POLLIN)
        for _ in range(2):
            if looking.poll(0):
                connection.pgconn.consume_input()
    except psycopg.Error:
        return True
    return connection.closed
