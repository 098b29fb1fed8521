"""A worker's session with the queue's database: it hears of new jobs, and is known to be alive.

The session holds a lock that Postgres frees the moment the worker is gone, however it went. That is
how the others know whose jobs to take over. A transaction pooler gives no session: then the worker
is known by its heartbeats alone, and looks for jobs instead of hearing of them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import psycopg

from bot.queue.inbox import QUEUE, QueueUnavailable
from memory.backends.postgres import has_sessions
from memory.migrations import SCHEMA

_CONNECT_S = 5
# A connection that the network lost is given up after about 25 s.
_IDLE_S, _INTERVAL_S, _PROBES = 10, 5, 3

Session = psycopg.AsyncConnection[Any]


class Presence:
    """One worker. `on_news` is called when a job was added; `lost` is set when the session is."""

    def __init__(self, database_url: str, on_news: Callable[[], None]) -> None:
        self._database_url = database_url
        self._on_news = on_news
        self._session: Session | None = None
        self.worker = 0
        self.lost = asyncio.Event()

    async def begin(self) -> bool:
        """Registers the worker, or takes its session up again; False when it comes back under
        another id because its jobs were given to others. Raises `QueueUnavailable`."""
        self._leave()
        try:
            session = await self._connect()
            try:
                worker = await self._register(session)
            except BaseException:
                session.pgconn.finish()
                raise
        except psycopg.Error as exc:
            raise QueueUnavailable(type(exc).__name__) from exc
        known, self.worker = self.worker, worker
        self.lost.clear()
        return known in (0, self.worker)

    async def end(self) -> None:
        """Leaves; what is still in the worker's hands is free to be taken over."""
        self._leave()

    async def _connect(self) -> Session:
        return await psycopg.AsyncConnection.connect(
            self._database_url,
            autocommit=True,
            connect_timeout=_CONNECT_S,
            prepare_threshold=None,
            keepalives_idle=_IDLE_S,
            keepalives_interval=_INTERVAL_S,
            keepalives_count=_PROBES,
        )

    async def _register(self, session: Session) -> int:
        has_session = has_sessions(self._database_url)
        cursor = await session.execute(
            f"select {SCHEMA}.begin_work(%s, %s)".encode(), (self.worker, has_session)
        )
        row = await cursor.fetchone()
        if has_session:
            await session.execute(f'listen "procrastinate_queue_v1#{QUEUE}"'.encode())
            self._listen(session)
        else:
            session.pgconn.finish()
        return int(row[0]) if row else 0

    def _listen(self, session: Session) -> None:
        self._session = session
        asyncio.get_running_loop().add_reader(session.pgconn.socket, self._readable)

    def _readable(self) -> None:
        """Notifications, or the end of the connection. Nothing else is asked over this session."""
        if self._session is None:
            return
        try:
            self._session.pgconn.consume_input()
            news = False
            while self._session.pgconn.notifies():
                news = True
        except psycopg.OperationalError:
            self._leave()
            self.lost.set()
        else:
            if news:
                self._on_news()

    def _leave(self) -> None:
        session, self._session = self._session, None
        if session is None:
            return
        with contextlib.suppress(psycopg.Error, OSError, ValueError):
            asyncio.get_running_loop().remove_reader(session.pgconn.socket)
        session.pgconn.finish()
