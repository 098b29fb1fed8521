"""Replies that are stored and that no job will send any more: their jobs are gone.

That takes an operator who drops a job, or a queue that was lost. The reply was promised: a worker
sends it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import structlog

from bot.feishu.comment_events import place_of_reply
from bot.feishu.errors import FeishuFailure
from bot.outbox.delivery import Aside, InComment, Target
from bot.outbox.sending import Outgoing, send
from bot.queue.inbox import QueueUnavailable
from bot.queue.table import JobTable
from bot.services import Services
from memory.errors import StoreError
from memory.models import StoredCard
from memory.scope import MAIN_ROOT, AgentMemoryContext, in_document, memory_context

log = structlog.get_logger()

_EVERY_S = 60.0
_OLDER_S = 600
_AT_ONCE = 20


async def sweep_forever(services: Services, table: JobTable) -> None:
    """Once a minute, for as long as the worker works."""
    while True:
        await asyncio.sleep(_EVERY_S)
        await sweep(services, table)


async def sweep(services: Services, table: JobTable, *, older_s: int = _OLDER_S) -> int:
    """Sends what has been pending for `older_s` without a job; returns how many. Never raises."""
    try:
        params = {"p_older_s": older_s, "p_limit": _AT_ONCE}
        rows = await services.rpc.call("pending_replies", params, None)
        keys = {row["turn_id"]: row["job_key"] for row in rows}
        left = await table.without_jobs(list(keys.values())) if rows else frozenset()
    except (StoreError, QueueUnavailable) as exc:
        log.warning("pending_replies.postponed", error=type(exc).__name__)
        return 0
    return sum([await _send(services, row) for row in rows if keys[row["turn_id"]] in left])


async def _send(services: Services, row: Mapping[str, Any]) -> bool:
    turn_id = row["turn_id"]
    try:
        outcome = await send(services, _outgoing(services, row), ends_unknown=True)
    except (FeishuFailure, StoreError) as exc:
        log.warning("pending_replies.failed", turn_id=turn_id, error=type(exc).__name__)
        return False
    if outcome.state == "failed":
        log.error("pending_replies.undeliverable", turn_id=turn_id, reason=outcome.reason)
        return False
    log.warning("pending_replies.sent", turn_id=turn_id)
    return True


def _outgoing(services: Services, row: Mapping[str, Any]) -> Outgoing:
    context = _context(row)
    return Outgoing(
        context,
        row["turn_id"],
        tuple(map(StoredCard.from_row, row["reply"])),
        _target(row, context),
        services.people.of(context.tenant_key).known,
        since_ms=row["stored_ms"],
        question=row["question"] or "",
        asked_ms=row["asked_ms"],
    )


def _target(row: Mapping[str, Any], context: AgentMemoryContext) -> Target | Aside | InComment:
    """What was answered in a person's own place goes to them alone."""
    if in_document(context.chat_id):
        return InComment(*place_of_reply(row["reply_to"], context.chat_id))
    if context.chat_id == context.actor_id:
        return Aside(context.actor_id)
    return Target(row["reply_to"], context.chat_id, context.root_id != MAIN_ROOT)


def _context(row: Mapping[str, Any]) -> AgentMemoryContext:
    return memory_context(
        chat_id=row["chat_id"],
        root=row["root_id"],
        subject=row["user_id"],
        actor=row["actor_id"],
        tenant_key=row["tenant_key"],
    )
