"""A worker's session with the queue's database: it is handed jobs, and is known to be alive.

The session holds a lock that Postgres frees the moment the worker is gone, however it went. That is
how the others know whose jobs to take over. Of a machine that was cut off the server learns within
two seconds: its kernel asks that machine's once a second. Who accepts an event gives the job to a
worker with room for it, over a channel whose name the worker has made up; else all are told that
there is one.
A transaction pooler gives no session: then the worker is known by its heartbeats alone, and looks
for jobs instead of hearing of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg

from bot.queue.inbox import QueueUnavailable
from bot.queue.jobs import Job
from memory.backends.postgres import keepalives, server_keepalives
from memory.backends.sessions import has_sessions
from memory.migrations import SCHEMA

_CONNECT_S = 5
_LOST_AFTER_S = 2
_JOBS, _STOPS = "feishu_bot_jobs", "feishu_bot_stops"

Session = psycopg.AsyncConnection[Any]
Notification = tuple[str, str]  # channel, payload


@dataclass(frozen=True, slots=True)
class Hearing:
    """What is done with what is heard: `news`, there is a job to take; `handed`, here is one;
    `stopped`, the turn of that id is to stop."""

    news: Callable[[], None]
    handed: Callable[[Job], None]
    stopped: Callable[[str], None] = lambda _: None


class Presence:
    """One worker with so many `places` for jobs. `lost` is set when its session is."""

    def __init__(self, database_url: str, hearing: Hearing, *, places: int) -> None:
        self._database_url = database_url
        self._hearing = hearing
        self._places = places
        self._channel = ""
        self._early: list[Notification] = []
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
        previous, self.worker = self.worker, worker
        self.lost.clear()
        self._hear(self._early)
        self._readable()  # what came with the answer makes no socket readable again
        return previous in (0, self.worker)

    async def end(self) -> None:
        """Leaves; what is still in the worker's hands is free to be taken over."""
        self._leave()

    async def _connect(self) -> Session:
        return await psycopg.AsyncConnection.connect(
            self._database_url,
            autocommit=True,
            connect_timeout=_CONNECT_S,
            prepare_threshold=None,
            **keepalives(_LOST_AFTER_S),
        )

    async def _register(self, session: Session) -> int:
        if not has_sessions(self._database_url):
            worker = await self._begin(session, has_session=False)
            session.pgconn.finish()
            return worker
        await session.execute(server_keepalives(_LOST_AFTER_S))
        self._channel, self._early = f"worker_{secrets.token_hex(16)}", []
        session.add_notify_handler(lambda n: self._early.append((n.channel, n.payload)))
        for channel in (_JOBS, _STOPS, self._channel):
            await session.execute(f'listen "{channel}"'.encode())
        worker = await self._begin(session, has_session=True)
        self._session = session
        asyncio.get_running_loop().add_reader(session.pgconn.socket, self._readable)
        return worker

    async def _begin(self, session: Session, *, has_session: bool) -> int:
        """From here on jobs may be handed to the worker."""
        cursor = await session.execute(
            f"select {SCHEMA}.begin_work(%s, %s, %s, %s)".encode(),
            (self.worker, has_session, self._places, self._channel),
        )
        row = await cursor.fetchone()
        return int(row[0]) if row else 0

    def _readable(self) -> None:
        """Notifications, or the end of the connection. Nothing else is asked over this session."""
        if self._session is None:
            return
        notifications: list[Notification] = []
        try:
            self._session.pgconn.consume_input()
            while one := self._session.pgconn.notifies():
                notifications.append((one.relname.decode(), one.extra.decode()))
        except psycopg.OperationalError:
            self._leave()
            self.lost.set()
        self._hear(notifications)

    def _hear(self, notifications: list[Notification]) -> None:
        for channel, payload in notifications:
            if channel == self._channel:
                number, _, rest = payload.partition(" ")
                self._hearing.handed(Job(id=int(number), attempt=1, **json.loads(rest)))
            elif channel == _STOPS:
                self._hearing.stopped(payload)
            else:
                self._hearing.news()

    def _leave(self) -> None:
        session, self._session = self._session, None
        if session is None:
            return
        with contextlib.suppress(psycopg.Error, OSError, ValueError):
            asyncio.get_running_loop().remove_reader(session.pgconn.socket)
        session.pgconn.finish()
