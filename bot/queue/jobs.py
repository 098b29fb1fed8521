"""The durable queue: what the webhook and the worker share.

An event is accepted once (`inbox` by idempotency key) and becomes a Procrastinate job in the same
statement. Jobs of one `lock` run in order; a finished job is deleted, and with it the message text.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import procrastinate
import psycopg
from procrastinate.jobs import Job
from psycopg.types.json import Jsonb
from psycopg_pool import ConnectionPool, PoolTimeout

from memory.backends.postgres import prepare_threshold
from memory.migrations import SCHEMA

QUEUE = "feishu"
EVENT_TASK = "feishu.event"
_SEARCH_PATH = f"-c search_path={SCHEMA}"
_ENQUEUE = f"select {SCHEMA}.enqueue_event(%s, %s, %s, %s, %s)"
_SPOOLED = f"select {SCHEMA}.spool_state(0)"

EventHandler = Callable[[dict[str, Any], int, int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Spooled:
    """Turns that wait for the memory, what it refused, and since when (s since epoch) the oldest
    waits."""

    turns: int
    refused: int
    since: float | None


class QueueUnavailable(Exception):
    """The queue did not take the event; Feishu must push it again."""


class MemoryAwaited(Exception):
    """Can be done only when the memory is back: waited for, behind the others of its lock."""


class Inbox:
    """The webhook's side: one insert per event, from any thread."""

    def __init__(self, database_url: str, *, size: int = 8, timeout_s: float = 2.0) -> None:
        self._pool = ConnectionPool(
            database_url,
            min_size=1,
            max_size=size,
            timeout=timeout_s,
            open=False,
            kwargs={"autocommit": True, "prepare_threshold": prepare_threshold(database_url)},
        )
        self._pool.open()

    def enqueue(
        self, key: str, payload: dict[str, Any], *, lock: str | None, received_ms: int
    ) -> bool:
        """Accepts an event; False when `key` was accepted before. Raises `QueueUnavailable`.

        `received_ms`: ms since epoch, when the webhook got it.
        """
        args = Jsonb({"payload": payload, "received_ms": received_ms})
        try:
            with self._pool.connection() as connection:
                row = connection.execute(_ENQUEUE, (key, QUEUE, EVENT_TASK, lock, args)).fetchone()
        except (psycopg.Error, PoolTimeout) as exc:
            raise QueueUnavailable(type(exc).__name__) from exc
        return bool(row and row[0] is not None)

    def spooled(self) -> Spooled:
        """What waits for a memory that is away. Raises `QueueUnavailable`."""
        try:
            with self._pool.connection() as connection:
                row = connection.execute(_SPOOLED).fetchone()
        except (psycopg.Error, PoolTimeout) as exc:
            raise QueueUnavailable(type(exc).__name__) from exc
        found: dict[str, Any] = row[0] if row else {}
        since = datetime.fromisoformat(found["since"]).timestamp() if found.get("since") else None
        return Spooled(found.get("waiting", 0), found.get("refused", 0), since)

    def ping(self) -> None:
        """Raises `QueueUnavailable` when the database does not answer."""
        try:
            with self._pool.connection() as connection:
                connection.execute("select 1")
        except (psycopg.Error, PoolTimeout) as exc:
            raise QueueUnavailable(type(exc).__name__) from exc

    def close(self) -> None:
        self._pool.close()


class Backoff(procrastinate.BaseRetryStrategy):
    """2, 4, 8 … 60 s between attempts; a worker that stops hands its job back at once.

    After the last attempt the job stays in the queue as failed, for operators to see. What awaits
    the memory is tried every 10 s for a day, and lets the later jobs of its lock go first.
    """

    def __init__(self, *, attempts: int = 12, awaiting_attempts: int = 8640) -> None:
        self._attempts = attempts
        self._awaiting_attempts = awaiting_attempts

    def get_retry_decision(
        self, *, exception: BaseException, job: Job
    ) -> procrastinate.RetryDecision | None:
        if not isinstance(exception, Exception):  # cancelled because the worker stops
            return procrastinate.RetryDecision(retry_at=datetime.now(UTC))
        awaiting = isinstance(exception, MemoryAwaited)
        if job.attempts + 1 >= (self._awaiting_attempts if awaiting else self._attempts):
            return None
        delay = min(2.0 ** min(job.attempts + 1, 6), 10.0 if awaiting else 60.0)
        retry_after = getattr(exception, "retry_after_s", None) or 0.0
        retry_at = datetime.now(UTC) + timedelta(seconds=max(delay, retry_after))
        return procrastinate.RetryDecision(retry_at=retry_at, priority=-1 if awaiting else None)


def worker_app(database_url: str, handler: EventHandler, *, size: int) -> procrastinate.App:
    """The worker's side: its one task hands (payload, received_ms, attempt) to `handler`."""
    connector = procrastinate.PsycopgConnector(
        conninfo=database_url,
        min_size=1,
        max_size=size,
        kwargs={"options": _SEARCH_PATH, "prepare_threshold": prepare_threshold(database_url)},
    )
    app = procrastinate.App(connector=connector)

    @app.task(name=EVENT_TASK, queue=QUEUE, retry=Backoff(), pass_context=True)
    async def event(
        context: procrastinate.JobContext, payload: dict[str, Any], received_ms: int
    ) -> None:
        await handler(payload, received_ms, context.job.attempts + 1)

    return app


async def resume_stalled(app: procrastinate.App, *, heartbeat_s: float) -> int:
    """Hands back the jobs of workers whose heartbeat is older than `heartbeat_s`."""
    stalled = await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=heartbeat_s)
    count = 0
    for job in stalled:
        await app.job_manager.retry_job(job, retry_at=datetime.now(UTC))
        count += 1
    return count


async def workers_alive(app: procrastinate.App, *, heartbeat_s: float = 10.0) -> int:
    """How many workers, on all machines, have beaten within `heartbeat_s`."""
    row = await app.connector.execute_query_one_async(
        "select count(*) as alive from procrastinate_workers"
        " where last_heartbeat > now() - make_interval(secs => %(heartbeat_s)s)",
        heartbeat_s=heartbeat_s,
    )
    return int(row["alive"])


async def prune(app: procrastinate.App, *, hours: int) -> None:
    """Forgets idempotency keys older than `hours` (at least 24)."""
    await app.connector.execute_query_async(f"select {SCHEMA}.prune_inbox(%(hours)s)", hours=hours)
