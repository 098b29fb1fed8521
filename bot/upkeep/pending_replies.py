"""Replies that are stored and that no job will send any more: their jobs are gone.

That takes an operator who drops a job, or a queue that was lost. The reply was promised: a worker
sends it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import structlog

from bot.feishu.errors import FeishuFailure
from bot.queue.inbox import QueueUnavailable
from bot.queue.table import JobTable
from bot.reply.buttons import card_buttons
from bot.reply.delivery import Target, Undeliverable, deliver
from bot.reply.finding import OutcomeUnknown, doubt_of, find_sent
from bot.reply.late import late_note
from bot.services import Services
from memory.errors import StoreError
from memory.models import StoredCard
from memory.scope import MAIN_ROOT, AgentMemoryContext, memory_context

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
        keys = {row["turn_id"]: _key(row["turn_id"]) for row in rows}
        left = await table.without_jobs(list(keys.values())) if rows else frozenset()
    except (StoreError, QueueUnavailable) as exc:
        log.warning("pending_replies.postponed", error=type(exc).__name__)
        return 0
    return sum([await _send(services, row) for row in rows if keys[row["turn_id"]] in left])


def _key(turn_id: str) -> str:
    """What a job for the turn would hold: the id of the message or of the button."""
    return turn_id.removeprefix("click:").removeprefix("reaction:").partition("~")[0]


async def _send(services: Services, row: Mapping[str, Any]) -> bool:
    context, turn_id = _context(row), row["turn_id"]
    try:
        for card in map(StoredCard.from_row, row["reply"]):
            if card.status == "pending":
                await _send_card(services, context, row, card)
    except (Undeliverable, OutcomeUnknown) as exc:
        await services.store.mark_failed(context, turn_id=turn_id, error=exc.reason)
        log.error("pending_replies.undeliverable", turn_id=turn_id, reason=exc.reason)
        return False
    except (FeishuFailure, StoreError) as exc:
        log.warning("pending_replies.failed", turn_id=turn_id, error=type(exc).__name__)
        return False
    log.warning("pending_replies.sent", turn_id=turn_id)
    return True


async def _send_card(
    services: Services, context: AgentMemoryContext, row: Mapping[str, Any], card: StoredCard
) -> None:
    turn_id = row["turn_id"]
    target = Target(row["reply_to"], context.chat_id, context.root_id != MAIN_ROOT)
    names = services.people.of(context.tenant_key).known
    doubt = doubt_of(services, row["stored_ms"])
    sent = await find_sent(
        services.feishu,
        target,
        doubt,
        turn_id=turn_id,
        chunk=card.chunk,
        content=card.content,
        names=names,
        file=card.file,
    )
    if sent is None:
        if doubt.is_unsent and card.chunk == 0:
            card = await _dated(services, context, row, card)
        sent = await deliver(
            services.feishu,
            target,
            turn_id=turn_id,
            chunk=card.chunk,
            content=card.content,
            names=names,
            buttons=card_buttons(card.buttons),
            file=card.file,
        )
    await services.store.mark_sent(
        context,
        turn_id=turn_id,
        chunk=card.chunk,
        content=sent.content,
        message_id=sent.message_id,
    )


async def _dated(
    services: Services, context: AgentMemoryContext, row: Mapping[str, Any], card: StoredCard
) -> StoredCard:
    note = late_note(row["question"] or "", row["asked_ms"], services.now())
    if not note:
        return card
    stored = await services.store.preface_reply(context, turn_id=row["turn_id"], note=note)
    return replace(card, content=stored[0].content)


def _context(row: Mapping[str, Any]) -> AgentMemoryContext:
    return memory_context(
        chat_id=row["chat_id"],
        root=row["root_id"],
        subject=row["user_id"],
        actor=row["actor_id"],
        tenant_key=row["tenant_key"],
    )
