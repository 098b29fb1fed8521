"""Works on the queue’s table over the worker’s connections, and keeps the session that proves the
worker alive.

All methods raise `QueueUnavailable`.

The session holds a lock that Postgres frees the moment the worker is gone, however it went. That is
how the others know whose jobs to take over. Of a machine that was cut off the server learns within
two seconds: its kernel asks that machine's once a second. Who accepts an event gives the job to a
worker with room for it, over a channel whose name the worker has made up; else all are told that
there is one.
A transaction pooler gives no session: then the worker is known by its heartbeats alone, and looks
for jobs instead of hearing of them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date
from typing import Any

import psycopg

from bot.queue.inbox import QueueUnavailable
from bot.queue.jobs import (
    CONNECT_TASK,
    IMPORT_TASK,
    PRIVATE_TASK,
    TENDING_TASK,
    TIMER_TASK,
    Dead,
    Job,
    RunAgain,
)
from memory.backends.connections import has_sessions
from memory.backends.exchange import AskingConnection
from memory.backends.pool import Pool
from memory.backends.postgres import keepalives, server_keepalives
from memory.migrations import SCHEMA
from memory.rpc import Statement
from memory.scope import AgentMemoryContext, FeishuPerson
from memory.tables.timers import TakenTimer

TENDING_AT_ONCE = 2  # in all workers; each has so many places besides those of its turns
IMPORTS_AT_ONCE = 2  # likewise
_TENDING_PRIORITY = -10
_IMPORT_PRIORITY = -20
_WITHIN_S = 5.0

_CONNECT_S = 5
_LOST_AFTER_S = 2
_JOBS, _STOPS = "feishu_bot_jobs", "feishu_bot_stops"
Session = psycopg.AsyncConnection[Any]
Notification = tuple[str, str]  # channel, payload


@dataclass(frozen=True, slots=True)
class Round:
    """What a worker is told about once a second.

    `known`: the worker is still registered; `jobs`: what it took; `missing`: ids of jobs of its own
    that are not in its hands; `handed_back`: those that were missing before; `suspects`: workers
    whose jobs stand still; `workers`: how many work, this one included; `stops`: ids of turns that
    were asked to stop lately; `now_s`: the database's clock, seconds since epoch, or 0.
    """

    known: bool
    jobs: tuple[Job, ...]
    missing: frozenset[int]
    handed_back: frozenset[int]
    suspects: tuple[int, ...]
    workers: int = 1
    stops: tuple[str, ...] = ()
    now_s: float = 0.0


class JobTable:
    """The jobs of the queue, over `pool`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def lost_since(self, moment: float) -> bool:
        """True if a connection broke or could not be made since `moment` (monotonic seconds)."""
        return self._pool.lost_since(moment)

    async def reachable(self) -> None:
        """Returns when the database takes connections, if the last one was lost."""
        await self._pool.reachable()

    async def take(self, worker: int, most: int) -> list[Job]:
        """Takes up to `most` jobs that may run now; the first of each lock."""
        rows = await self._value("take_jobs", worker, most)
        return [Job(**row) for row in rows]

    async def end(self, job: Job, worker: int) -> Any:
        """The job is done and goes; `taken` says which the worker has instead."""
        return await self._value("end_and_take", job.id, worker)

    async def again(self, job: Job, worker: int, after: RunAgain) -> None:
        """Puts the job back, to be taken after the pause."""
        reason = {"waits_for": after.reason} if after.reason else {}
        note = json.dumps({**after.note, **reason})
        await self._value("retry_job", job.id, worker, after.pause_s, after.behind, note)

    async def fail(self, job: Job, worker: int, dead: Dead) -> None:
        """The job stays as failed; `dead.reason` is a kind, without text of anybody."""
        await self._value("fail_job", job.id, worker, dead.reason, json.dumps(dict(dead.note)))

    async def without_jobs(self, keys: Sequence[str]) -> frozenset[str]:
        """Those ids of messages and buttons of which no job tells, waiting, running or failed."""
        return frozenset(await self._value("without_jobs", list(keys)))

    async def keep_turn_records(self, rows: Sequence[Mapping[str, Any]], *, keep: bool) -> None:
        """Adds up what turns used; with `keep` also what they were made of. See `TurnRecord`."""
        await self._value("keep_turn_records", json.dumps(rows), keep)

    async def keep_calls(self, day: date, usage: Sequence[Mapping[str, Any]]) -> int:
        """Adds up what was used beside the answers (see `Used`); how many calls of Feishu's API
        this month count against its limit."""
        count: int = await self._value("keep_calls", day, json.dumps(usage))
        return count

    async def forget_turn_records(self, *, days: int) -> None:
        """Deletes what turns were made of more than `days` ago."""
        await self._value("forget_turn_records", days)

    async def usage_exhausted(
        self, day: date, person: int, chat: int
    ) -> tuple[list[str], list[str]]:
        """open_ids and chats that have used so many tokens on `day`; 0: there is no limit."""
        limit = await self._value("usage_exhausted", day, person, chat)
        return limit["people"], limit["chats"]

    async def share_person_rates(
        self, spent_requests: Sequence[Mapping[str, Any]], per_minute: int
    ) -> list[dict[str, Any]]:
        """Counts what this worker let through; the levels of these people over all workers."""
        rows: list[dict[str, Any]] = await self._value(
            "share_person_rates", json.dumps(spent_requests), per_minute
        )
        return rows

    async def tell_person_rate(self, asker: FeishuPerson) -> bool:
        """Whether the caller is the one to tell the person that requests are skipped."""
        return bool(await self._value("tell_person_rate", asker.tenant_key, asker.open_id))

    async def forget_failed(self, *, days: int) -> int:
        """Deletes what failed or was refused more than `days` ago; returns how many."""
        count: int = await self._value("forget_failed", days)
        return count

    async def look_round(
        self, worker: int, running: Collection[int], room: int, missing: Collection[int]
    ) -> Round:
        """The worker is alive, has the jobs `running` in its hands and takes up to `room` more;
        of those `missing` the last time, what still is goes back to the queue."""
        row = await self._value("look_round", worker, sorted(running), room, sorted(missing))
        return Round(
            known=row["known"],
            jobs=tuple(Job(**job) for job in row["jobs"]),
            missing=frozenset(row["missing"]),
            handed_back=frozenset(row["handed_back"]),
            suspects=tuple(row["suspects"]),
            workers=row["workers"],
            stops=tuple(row["stops"]),
            now_s=row["now_s"],
        )

    async def close_places(self, worker: int) -> None:
        """The worker is handed no more jobs."""
        await self._value("close_places", worker)

    async def take_over(self, workers: Sequence[int]) -> int:
        """Hands back the jobs of workers that are still gone; returns how many."""
        count: int = await self._value("take_over", list(workers))
        return count

    async def prune(self, *, hours: int) -> None:
        """Forgets idempotency keys older than `hours` (at least 24), and workers that are gone."""
        await self._value("prune_inbox", hours)

    async def forget_old(self, *, days: int) -> int:
        """Deletes what has waited for longer than `days` (at least 1): jobs that no worker has in
        hand, and what waits for the memory. Returns how many."""
        count: int = await self._value("forget_old", days)
        return count

    async def queue_tending(self, context: AgentMemoryContext) -> None:
        """Queues the tending of a person's conversation unless that waits already."""
        args = json.dumps(
            {
                "conversation_id": context.conversation_id,
                "user_id": context.user_id,
                "tenant_key": context.tenant_key,
            }
        )
        whose = f"{context.conversation_id} {context.user_id}"
        await self._value(
            "queue_tending", TENDING_TASK, _TENDING_PRIORITY, TENDING_AT_ONCE, whose, args
        )

    async def queue_timer(self, timer: TakenTimer, now_ms: int) -> None:
        """Queues the job of a timer's time unless it waits already; `now_ms` is ms since epoch."""
        args = json.dumps({"timer_id": timer.id, "due_ms": timer.due_ms, "received_ms": now_ms})
        await self._value("queue_timer", TIMER_TASK, timer.id, args)

    async def queue_import(self, import_id: int, note: Mapping[str, object]) -> None:
        """Queues the next step of an import; one that waits already takes `note` over, its
        arguments. With `wait_s` it waits so many seconds, and those beside it go first."""
        fields = {key: value for key, value in note.items() if key != "wait_s"}
        await self._queue_import(import_id, fields, float(str(note.get("wait_s", 0.0))))

    async def queue_idle_import(self, import_id: int) -> bool:
        """Queues a step of an import of which no job waits or runs; whether there was none."""
        return await self._queue_import(import_id, {}, 0.0, if_idle=True)

    async def _queue_import(
        self, import_id: int, note: Mapping[str, object], wait_s: float, *, if_idle: bool = False
    ) -> bool:
        whose = (IMPORT_TASK, _IMPORT_PRIORITY, IMPORTS_AT_ONCE, import_id)
        args = json.dumps({**note, "import_id": import_id})
        return bool(await self._value("queue_import", *whose, args, wait_s, if_idle))

    async def queue_connect(
        self, person: FeishuPerson, wait_s: float = 0.0, *, why: str = "", if_idle: bool = False
    ) -> bool:
        """Queues what is next for a person's own tokens, in `wait_s`; whether it is a new job."""
        args = {"tenant_key": person.tenant_key, "user_id": person.open_id, "why": why}
        whose = f"{person.tenant_key} {person.open_id}"
        more = (json.dumps(args), wait_s, if_idle)
        return bool(await self._value("queue_connect", CONNECT_TASK, whose, *more))

    async def is_stopped(self, turn_id: str) -> bool:
        """Whether the turn was asked to stop, also before a crash."""
        return bool(await self._value("is_stopped", turn_id))

    async def run(self, statement: Statement) -> None:
        """Runs a statement such as `private_lookup_statement`."""
        async with self._connection() as connection:
            await connection.ask(statement.sql.encode(), statement.params)

    async def _value(self, function: str, *args: object) -> Any:
        places = ", ".join(["%s"] * len(args))
        async with self._connection() as connection:
            return await connection.ask(f"select {SCHEMA}.{function}({places})".encode(), args)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[AskingConnection]:
        try:
            async with self._pool.connection() as connection, asyncio.timeout(_WITHIN_S):
                yield connection
        except (psycopg.Error, TimeoutError) as exc:
            raise QueueUnavailable(type(exc).__name__) from exc


def private_lookup_statement(turn_id: str, args: Mapping[str, str]) -> Statement:
    """What queues the look-up after a turn unless it waits; it shares the places of tending.
    `args` are the job's."""
    of_job = (f"private {turn_id}", json.dumps(dict(args)))
    return Statement(
        f"select {SCHEMA}.queue_tending(%s, %s, %s, %s, %s)",
        (PRIVATE_TASK, _TENDING_PRIORITY, TENDING_AT_ONCE, *of_job),
    )


def stopping_statement(turn_id: str) -> Statement:
    """What tells all workers that a turn is to stop."""
    return Statement(f"select {SCHEMA}.stop_turn(%s)", (turn_id,))


def ending_statement(job: Job, worker: int) -> Statement:
    """What `JobTable.end` does, to be run in a transaction of the memory's."""
    return Statement(f"select {SCHEMA}.end_and_take(%s, %s)", (job.id, worker))


def ending_if_silent_statement(job: Job, worker: int, message_id: str) -> Statement:
    """The same, if the transaction has stored that the message is not answered."""
    return Statement(f"select {SCHEMA}.end_if_silent(%s, %s, %s)", (job.id, worker, message_id))


def taken_job(row: Any) -> Job | None:
    """The next job of the lock, which the worker has then, by the result of either."""
    return Job(**row) if row else None


@dataclass(frozen=True, slots=True)
class Hearing:
    """What is done with what is heard: `news`, there is a job to take; `take_job`, here is one;
    `stop_turn`, the turn of that id is to stop."""

    news: Callable[[], None]
    take_job: Callable[[Job], None]
    stop_turn: Callable[[str], None] = lambda _: None


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
                self._hearing.take_job(Job(id=int(number), attempt=1, **json.loads(rest)))
            elif channel == _STOPS:
                self._hearing.stop_turn(payload)
            else:
                self._hearing.news()

    def _leave(self) -> None:
        session, self._session = self._session, None
        if session is None:
            return
        with contextlib.suppress(psycopg.Error, OSError, ValueError):
            asyncio.get_running_loop().remove_reader(session.pgconn.socket)
        session.pgconn.finish()
