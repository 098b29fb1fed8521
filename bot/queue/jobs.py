"""The worker's side of the queue: Procrastinate jobs over the tables that the inbox writes.

Jobs of one `lock` run in order; a finished job is deleted, and with it the message text. A second
kind of job tends a conversation after its turns: it has ids for arguments and no lock in common
with them. Of a person's conversation one waits at most; its locks only bound how many run at once.
"""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import procrastinate
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.jobs import Job

from bot.queue.inbox import EVENT_TASK, QUEUE, QueueUnavailable
from memory.backends.postgres import prepare_threshold
from memory.migrations import SCHEMA
from memory.scope import AgentMemoryContext

TENDING_TASK = "feishu.tending"
TENDING_AT_ONCE = 2  # in all workers; each has so many places besides those of its turns
_TENDING_PRIORITY = -10
_SEARCH_PATH = f"-c search_path={SCHEMA}"

EventHandler = Callable[[dict[str, Any], int, int], Awaitable[None]]
# (conversation_id, user_id, tenant_key, attempt)
TendingHandler = Callable[[str, str, str, int], Awaitable[None]]


class MemoryAwaited(Exception):
    """Can be done only when the memory is back: waited for, behind the others of its lock."""


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


async def prune(app: procrastinate.App, *, hours: int) -> None:
    """Forgets idempotency keys older than `hours` (at least 24)."""
    await app.connector.execute_query_async(f"select {SCHEMA}.prune_inbox(%(hours)s)", hours=hours)


def add_tending(app: procrastinate.App, handler: TendingHandler) -> None:
    """Makes the worker of `app` hand these jobs to `handler`."""

    @app.task(name=TENDING_TASK, queue=QUEUE, retry=Backoff(), pass_context=True)
    async def tend(
        context: procrastinate.JobContext, conversation_id: str, user_id: str, tenant_key: str
    ) -> None:
        await handler(conversation_id, user_id, tenant_key, context.job.attempts + 1)


async def defer_tending(app: procrastinate.App, context: AgentMemoryContext) -> None:
    """Queues the job of a person's conversation unless one waits. Raises `QueueUnavailable`."""
    whose = f"{context.conversation_id} {context.user_id}"
    task = app.configure_task(
        TENDING_TASK,
        queue=QUEUE,
        priority=_TENDING_PRIORITY,
        lock=f"tending {zlib.crc32(whose.encode()) % TENDING_AT_ONCE}",
        queueing_lock=f"tending {whose}",
    )
    try:
        await task.defer_async(
            conversation_id=context.conversation_id,
            user_id=context.user_id,
            tenant_key=context.tenant_key,
        )
    except AlreadyEnqueued:
        return
    except ConnectorException as exc:
        raise QueueUnavailable(type(exc).__name__) from exc
