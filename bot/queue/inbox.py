"""Accepts events for the webhook: one insert per event, keyed so that each is accepted once. It
also notes which kinds of events arrive.

The key (`inbox`) and the job that carries the event are written by the same statement. Events that
arrive together share a transaction, and each is accepted only when that is committed: the first
thread makes the call for those that wait, and a call that is alone waits for nobody. A thread is
woken only when it has an outcome or makes the next call, because threads share one interpreter.

Feishu tells nobody to which events an app is subscribed, so an event proves itself by arriving. The
edge notes each kind at most once an hour, beside the acknowledgement and never before it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Generic, TypeVar

import psycopg
import structlog
from psycopg import pq
from psycopg.errors import DeadlockDetected, ReadOnlySqlTransaction

from bot.process.concurrency import waiting_since
from bot.queue.jobs import EVENT_TASK
from memory.backends.connections import (
    NoConnection,
    ThreadPool,
    has_sessions,
    is_lost,
    leads_to_standby,
    prepare_threshold,
)
from memory.deadlines import DeadlineConnection
from memory.migrations import SCHEMA
from memory.scope import FeishuPerson
from memory.text import as_json

T = TypeVar("T")
_CONNECT_S = 2
_TRIES = 3  # of a statement whose connection breaks, while there is time
_SHORTEST_S = 0.2  # for a delivery that has waited for a thread: a database that works needs less

# One text, whatever the number of events: arrays take three times as long to write.
_ENQUEUE = (
    f"select {SCHEMA}.enqueue(e.key, $1, e.lock, e.args, e.topic) "  # noqa: S608
    "from jsonb_to_recordset($2) e (key text, lock text, args jsonb, topic text)"
).encode()
_NOTE_ARRIVAL = f"select {SCHEMA}.note_arrival(%s)"
_STOP = f"select {SCHEMA}.stop_turn(%s)"
_OVER_RATE = f"select {SCHEMA}.is_over_rate(%s, %s, %s, %s)"
_HOLD = f"select {SCHEMA}.hold_lease(%s, %s, %s)"
_RELEASE = f"select {SCHEMA}.release_lease(%s, %s)"
_READ_ONLY = b"select current_setting('transaction_read_only')"
_COUNT_UNSTORED = f"select {SCHEMA}.waiting_stores()"

log = structlog.get_logger()
REFUSAL_PREFIX = "refused: "
NOTED_EVERY = timedelta(hours=1)
_LONGEST = 100
_MOST_KINDS = 200
R = TypeVar("R")
_PATIENCE_S = 0.05


@dataclass(frozen=True, slots=True)
class Unstored:
    """How many turns wait for the memory, how many jobs it refused, and since when (s since epoch)
    the oldest of what waits does."""

    turns: int
    refused: int
    since: float | None


@dataclass(frozen=True, slots=True)
class Arrived:
    """An event on its way into the queue, until then (monotonic seconds)."""

    key: str
    lock: str | None
    lock_in_topic: str | None
    payload: dict[str, Any]
    received_ms: int
    until: float

    def as_row(self) -> dict[str, Any]:
        args = {"payload": self.payload, "received_ms": self.received_ms}
        topic = {"topic": self.lock_in_topic} if self.lock_in_topic else {}
        return {"key": self.key, "lock": self.lock, "args": args, **topic}


class QueueUnavailable(Exception):
    """The queue did not take the event; Feishu must push it again."""


class Storing:
    """Events that are being stored in one transaction, for a loop that waits for `socket` itself.

    `step` begins, and goes on when what it waits for is there. It returns what that is (a mask of
    `selectors`); 0: it is over, and `fresh` says of each event whether it is new. Whatever goes
    wrong is raised as `QueueUnavailable`: nobody knows then whether the events are stored.
    """

    def __init__(self, pool: ThreadPool, connection: DeadlineConnection, rows: str) -> None:
        self._pool = pool
        self._connection = connection
        self._asking: Generator[int, int, list[bytes | None]] = connection.asking(
            _ENQUEUE, [EVENT_TASK.encode(), rows.encode()]
        )
        self._wanted_events: int | None = None
        self.socket = connection.fileno()
        self.fresh: Sequence[bool] = ()
        self._failure: psycopg.Error | None = None

    def step(self) -> int:
        try:
            self._wanted_events = int(self._asking.send(self._wanted_events))  # type: ignore[arg-type]  # None first
        except StopIteration as over:
            self.fresh = [job is not None for job in over.value]
            return 0
        except psycopg.Error as exc:
            self._failure = exc
            raise QueueUnavailable(type(exc).__name__) from exc
        return self._wanted_events

    def end(self) -> None:
        """Gives the connection back, closed if something is under way on it; to be called once."""
        self._asking.close()
        if self._connection.pgconn.transaction_status != pq.TransactionStatus.IDLE:
            self._connection.pgconn.finish()
        self._pool.give_back(self._connection, self._failure)


class Inbox:
    """The webhook's side: one insert per event, from any thread.

    Whatever the database does, a delivery is answered `timeout_s` after it came, or a moment after
    a thread had time for it: one that is not answered within 3 s is pushed again in any case.
    """

    def __init__(self, database_url: str, *, size: int = 4, timeout_s: float = 1.8) -> None:
        self._timeout_s = timeout_s
        self._database_url = database_url
        self._together = GroupCommit[Arrived, bool](self._enqueue)
        self._connect = partial(
            DeadlineConnection.connect,
            database_url,
            autocommit=True,
            prepare_threshold=None,
            connect_timeout=_CONNECT_S,
        )
        self._pool = ThreadPool(self._connection_within, size=size)
        self._pool.open()

    def enqueue(
        self,
        key: str,
        payload: dict[str, Any],
        *,
        lock: str | None,
        received_ms: int,
        lock_in_topic: str | None = None,
    ) -> bool:
        """Accepts an event; False when `key` was accepted before. Raises `QueueUnavailable`.

        `received_ms`: ms since epoch, when the webhook got it. `lock_in_topic` takes the place of
        `lock` if the chat is known as a topic group. Events that arrive while others are
        stored are stored next, in one transaction; one that is refused keeps none of them out.
        """
        return self._together.call(self.arrival(key, payload, received_ms, lock, lock_in_topic))

    def arrival(
        self,
        key: str,
        payload: dict[str, Any],
        received_ms: int,
        lock: str | None,
        lock_in_topic: str | None,
    ) -> Arrived:
        """What `enqueue` stores of these; for `storing`."""
        return Arrived(key, lock, lock_in_topic, payload, received_ms, self._until())

    def storing(self, events: Sequence[Arrived]) -> Storing | None:
        """The same for several events, without waiting for anything; None when no connection is
        free. Once it has begun it is for the caller to see that it ends in time."""
        if (connection := self._pool.take_idle()) is None:
            return None
        return Storing(self._pool, connection, as_json([event.as_row() for event in events]))

    def is_over_rate(self, asker: FeishuPerson, at_ms: int, per_minute: int) -> bool:
        """Whether the person has asked for all that they may. Raises `QueueUnavailable`."""
        return bool(self._value(_OVER_RATE, asker.tenant_key, asker.open_id, at_ms, per_minute))

    def stop_turn(self, turn_id: str) -> None:
        """Tells all workers that the turn is to stop. Raises `QueueUnavailable`."""
        self._value(_STOP, turn_id)

    def hold_lease(self, name: str, holder: str, seconds: float) -> bool:
        """Takes or renews a lease; False while another process holds it. Raises
        `QueueUnavailable`."""
        return bool(self._value(_HOLD, name, holder, seconds))

    def release_lease(self, name: str, holder: str) -> None:
        """Another process may take it at once. Raises `QueueUnavailable`."""
        self._value(_RELEASE, name, holder)

    def unstored_counts(self) -> Unstored:
        """What waits for a memory that is away. Raises `QueueUnavailable`."""
        row: dict[str, Any] = self._value(_COUNT_UNSTORED) or {}
        waiting_since_s = (
            datetime.fromisoformat(row["since"]).timestamp() if row.get("since") else None
        )
        return Unstored(row.get("turns", 0), row.get("refused", 0), waiting_since_s)

    def note_arrival(self, kind: str) -> None:
        """Something of this kind has arrived now. Raises `QueueUnavailable`."""
        self._value(_NOTE_ARRIVAL, kind)

    def ping(self) -> None:
        """Raises `QueueUnavailable` when the database does not answer, or takes no writes."""

        def ask(connection: DeadlineConnection) -> None:
            if connection.execute(_READ_ONLY).fetchone() == ("on",):
                raise ReadOnlySqlTransaction("the server takes no writes")

        self._ask_within(ask, self._until())

    def close(self) -> None:
        self._pool.close()

    def _enqueue(self, events: Sequence[Arrived]) -> list[bool | Exception]:
        """Each event's outcome. Raises `QueueUnavailable` where it is the same for all."""
        try:
            return list(self._store(events))
        except QueueUnavailable as exc:
            # the connection, the server or the time: no reason that lies in one event
            same = isinstance(exc.__cause__, psycopg.OperationalError) or leads_to_standby(
                exc.__cause__
            )
            if len(events) == 1 or (same and not isinstance(exc.__cause__, DeadlockDetected)):
                raise
            return [self._outcome_alone(event) for event in events]

    def _store(self, events: Sequence[Arrived]) -> list[bool]:
        """Of each whether it is new; all in one transaction."""
        rows = as_json([event.as_row() for event in events])
        values = [EVENT_TASK.encode(), rows.encode()]
        until = min(event.until for event in events)
        jobs = self._ask_within(lambda connection: connection.ask(_ENQUEUE, values), until)
        return [job is not None for job in jobs]

    def _outcome_alone(self, event: Arrived) -> bool | Exception:
        try:
            [fresh] = self._store([event])
        except QueueUnavailable as exc:
            return exc
        return fresh

    def _until(self) -> float:
        """When this thread has to be done, in monotonic seconds."""
        return max(waiting_since() + self._timeout_s, time.monotonic() + _SHORTEST_S)

    def _value(self, query: str, *params: object) -> Any:
        """The first column of the first row. Raises `QueueUnavailable`."""

        def ask(connection: DeadlineConnection) -> Any:
            row = connection.execute(query.encode(), params).fetchone()
            return row[0] if row else None

        return self._ask_within(ask, self._until())

    def _ask_within(self, ask: Callable[[DeadlineConnection], T], until: float) -> T:
        """What `ask` gives by `until` (monotonic seconds). Asks again if the connection breaks, so
        `ask` must do no harm when it is repeated. Raises `QueueUnavailable`."""
        for tries_left in reversed(range(_TRIES)):
            try:
                with self._pool.connection(until) as connection, connection.until_then(until):
                    return ask(connection)
            except psycopg.Error as exc:
                is_over = isinstance(exc, NoConnection) or time.monotonic() >= until
                if not tries_left or is_over or not is_lost(exc):
                    raise QueueUnavailable(type(exc).__name__) from exc
        raise AssertionError("unreachable")

    def _connection_within(self) -> DeadlineConnection:
        """A new connection. The server itself gives up a little earlier: then the connection can
        stay. Through a transaction pooler a setting would be somebody else's with the next
        transaction. What the database is cannot be asked before it answers."""
        connection = self._connect()
        if has_sessions(self._database_url):
            connection.prepare_threshold = prepare_threshold(self._database_url)
            limit_ms = str(round(self._timeout_s * 800))
            setting = "select set_config('statement_timeout', %s, false)"
            try:
                with connection.until_then(time.monotonic() + self._timeout_s):
                    connection.execute(setting, [limit_ms])
            except psycopg.Error:
                connection.close()
                raise
        return connection


@dataclass
class Arrivals:
    """Notes kinds of events, from any thread. `clock` is monotonic seconds."""

    inbox: Inbox
    clock: Callable[[], float] = time.monotonic
    _noted_at: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _writer: ThreadPoolExecutor | None = None

    def note(self, kind: str) -> Future[None] | None:
        """Something of this kind has arrived; None when that was noted within the hour."""
        kind = kind[:_LONGEST]
        now = self.clock()
        with self._lock:
            last_noted = self._noted_at.get(kind)
            if not kind or (
                last_noted is not None and now - last_noted < NOTED_EVERY.total_seconds()
            ):
                return None
            if last_noted is None and len(self._noted_at) >= _MOST_KINDS:
                return None
            self._noted_at[kind] = now
            self._writer = self._writer or ThreadPoolExecutor(1, "arrivals")
            return self._writer.submit(self._write, kind)

    def close(self) -> None:
        if self._writer:
            self._writer.shutdown(wait=True)

    def _write(self, kind: str) -> None:
        try:
            self.inbox.note_arrival(kind)
        except QueueUnavailable as exc:
            log.info("arrivals.not_noted", kind=kind, error=str(exc))
            with self._lock:
                self._noted_at.pop(kind, None)  # with the next one


def _closed_lock() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


@dataclass(eq=False, slots=True)
class _Call(Generic[T, R]):
    """`wake_lock` opens when there is an outcome, or when this call is to make the call of all in
    `makes`."""

    item: T
    makes: Sequence[_Call[T, R]] = ()
    outcome: list[R | Exception] = field(default_factory=list)
    wake_lock: threading.Lock = field(default_factory=_closed_lock)

    def result(self) -> R:
        outcome = self.outcome[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


class GroupCommit(Generic[T, R]):
    """`send` is given what waits, in the order in which it came, and returns or raises; for each an
    outcome, which is returned or raised to whom it belongs.

    A call that takes longer than `patience_s` keeps nobody waiting: the next goes beside it.
    """

    def __init__(
        self,
        send: Callable[[Sequence[T]], Sequence[R | Exception]],
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self._send = send
        self._patience_s = patience_s
        self._changing = threading.Lock()
        self._waiting: list[_Call[T, R]] = []
        self._under_way = 0

    def call(self, item: T) -> R:
        """The outcome for `item`, which was sent alone or with others."""
        mine: _Call[T, R] = _Call(item)
        with self._changing:
            self._waiting.append(mine)
            if not self._under_way:
                self._choose(mine)
        if not mine.makes and not mine.wake_lock.acquire(timeout=self._patience_s):
            with self._changing:
                if mine in self._waiting:
                    self._choose(mine)
            if not mine.makes:
                mine.wake_lock.acquire()
        if mine.makes:
            self._make(mine)
        return mine.result()

    def _choose(self, maker: _Call[T, R]) -> None:
        """It makes the call of all that wait. To be called while `_changing`."""
        maker.makes, self._waiting = self._waiting, []
        self._under_way += 1

    def _make(self, mine: _Call[T, R]) -> None:
        calls = mine.makes
        outcomes: Sequence[R | Exception] = [RuntimeError("the call was given up")] * len(calls)
        try:
            outcomes = self._send([call.item for call in calls])
        except Exception as exc:
            outcomes = [exc] * len(calls)
            raise
        finally:
            waiting_calls = [call for call in calls if call is not mine]
            for call, outcome in zip(calls, outcomes, strict=True):
                call.outcome.append(outcome)
            with self._changing:
                self._under_way -= 1
                if self._waiting and not self._under_way:
                    waiting_calls.insert(0, self._waiting[0])
                    self._choose(self._waiting[0])
            for call in waiting_calls:
                call.wake_lock.release()
