"""What is done for a conversation between its turns, in the background and for its owner.

A turn asks for it when it has answered; the job carries ids only. What fails here is tried a few
times and then left until the next turn asks again: no turn waits for it or fails with it.
"""

from __future__ import annotations

import traceback

import structlog

from bot.answering.embedding import embed_messages
from bot.answering.summaries import fold_history
from bot.process import metrics
from bot.queue.inbox import QueueUnavailable
from bot.queue.jobs import Later
from bot.services import Services
from memory.errors import StoreError
from memory.models import OpenTurn
from memory.scope import AgentMemoryContext

log = structlog.get_logger()

TRIES = 4


async def tend_later(services: Services, context: AgentMemoryContext, open_turn: OpenTurn) -> None:
    """Asks for the tending of a turn's conversation if there is anything to do."""
    to_embed = services.embedder is not None and not open_turn.degraded
    if services.queue_tending is None or not (open_turn.fold_due or to_embed):
        return
    try:
        await services.queue_tending(context)
    except QueueUnavailable as exc:
        log.warning("tending.not_queued", error=str(exc))


async def handle_tending(services: Services, context: AgentMemoryContext, attempt: int) -> None:
    """One job. Raises what is worth another attempt; the last one is given up quietly."""
    structlog.contextvars.bind_contextvars(conversation_id=context.conversation_id)
    try:
        await tend_conversation(services, context)
    except Exception as exc:
        given_up = attempt >= TRIES
        metrics.TENDING.labels(outcome="given_up" if given_up else "failed").inc()
        log.warning("tending.failed", error=type(exc).__name__, given_up=given_up, **_cause(exc))
        if not given_up:
            raise Later(type(exc).__name__) from exc
    else:
        metrics.TENDING.labels(outcome="done").inc()


def _cause(exc: Exception) -> dict[str, object]:
    """Of what was foreseen the code; else the frames only, for the message may hold words."""
    if isinstance(exc, StoreError):
        return {"code": exc.code}
    return {"stack": "".join(traceback.format_tb(exc.__traceback__))}


async def tend_conversation(services: Services, context: AgentMemoryContext) -> None:
    """Every step, one after the other; each finds out by itself whether there is work."""
    await fold_history(services, context)
    await embed_messages(services, context)
