"""The queue's second kind of job: tending a conversation after its turns.

Such a job has ids for arguments and no lock in common with the turns of its conversation. Of a
person's conversation one waits at most; its locks only bound how many run at once.
"""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable

import procrastinate
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException

from bot.queue.jobs import QUEUE, Backoff, QueueUnavailable
from memory.scope import AgentMemoryContext

TASK = "feishu.tending"
AT_ONCE = 2  # in all workers; each has so many places besides those of its turns
_PRIORITY = -10

# (conversation_id, user_id, tenant_key, attempt)
TendingHandler = Callable[[str, str, str, int], Awaitable[None]]


def add_tending(app: procrastinate.App, handler: TendingHandler) -> None:
    """Makes the worker of `app` hand these jobs to `handler`."""

    @app.task(name=TASK, queue=QUEUE, retry=Backoff(), pass_context=True)
    async def tend(
        context: procrastinate.JobContext, conversation_id: str, user_id: str, tenant_key: str
    ) -> None:
        await handler(conversation_id, user_id, tenant_key, context.job.attempts + 1)


async def defer_tending(app: procrastinate.App, context: AgentMemoryContext) -> None:
    """Queues the job of a person's conversation unless one waits. Raises `QueueUnavailable`."""
    whose = f"{context.conversation_id} {context.user_id}"
    task = app.configure_task(
        TASK,
        queue=QUEUE,
        priority=_PRIORITY,
        lock=f"tending {zlib.crc32(whose.encode()) % AT_ONCE}",
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
