"""Sends stored replies and finishes streamed cards that no job will complete.

Such a reply is left when an operator drops a job, or when a queue is lost. A worker sends it,
because it was promised.

A turn whose worker died is tried again and finishes its card itself. This module finishes the card
when the attempts are used up: with the stored reply, or with an honest sentence that is stored
first."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

import structlog

from bot.feishu.errors import FeishuFailure
from bot.feishu.other_events import place_of_comment_key
from bot.outbox.delivery import Aside, InComment, Target, Undeliverable
from bot.outbox.live_card import LiveCard
from bot.outbox.sending import Outgoing, send
from bot.outbox.texts import say_both
from bot.queue.inbox import QueueUnavailable
from bot.queue.table import JobTable
from bot.services import Services
from memory.errors import StoreError, StoreUnavailable
from memory.models import StoredCard
from memory.scope import MAIN_ROOT, AgentMemoryContext, is_document_chat, memory_context
from memory.tables.cards import CardStore, OpenCard

log = structlog.get_logger()
_EVERY_S = 60.0
_OLDER_S = 600
_AT_ONCE = 20

LEFT_AFTER_S = 560  # an answer may flow for nine minutes
_UNTOUCHED_S = 60
_LEFT_CARDS_EVERY_S = 15.0


async def tend_pending_replies(services: Services, table: JobTable) -> None:
    """Sends pending replies once a minute, as long as the worker works."""
    while True:
        await asyncio.sleep(_EVERY_S)
        await send_pending_replies(services, table)


async def send_pending_replies(
    services: Services, table: JobTable, *, older_s: int = _OLDER_S
) -> int:
    """Sends replies that have been pending for `older_s` without a job. Returns how many. Never
    raises."""
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
    """Returns where the reply goes. A reply in a person's own place goes to them alone."""
    if is_document_chat(context.chat_id):
        return InComment(*place_of_comment_key(row["reply_to"], context.chat_id))
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


async def tend_left_cards(services: Services) -> None:
    """Finishes left cards at intervals, as long as the worker works."""
    while True:
        await finish_left_cards(services)
        await asyncio.sleep(_LEFT_CARDS_EVERY_S)


async def finish_left_cards(
    services: Services, *, older_s: int = LEFT_AFTER_S, untouched_s: int = _UNTOUCHED_S
) -> int:
    """Finishes cards that were left at least `older_s` seconds ago. Returns how many. Never raises:
    a card that fails now is tried again in a minute."""
    store = CardStore(services.rpc)
    count = 0
    try:
        for open_card in await store.take_left(older_s=older_s, untouched_s=untouched_s):
            count += await _finish_one(services, store, open_card)
    except StoreUnavailable as exc:
        log.warning("left_cards.memory_away", error=type(exc).__name__, code=exc.code)
    except StoreError as exc:
        log.error("left_cards.refused", error=type(exc).__name__, code=exc.code)
    return count


async def _finish_one(services: Services, store: CardStore, open_card: OpenCard) -> bool:
    try:
        state = await _finish(services, LiveCard(services.feishu, store, open_card), open_card)
        await store.mark_finished(open_card)
    except (FeishuFailure, StoreError) as exc:
        log.warning("left_cards.failed", turn_id=open_card.turn_id, error=type(exc).__name__)
        return False
    log.warning("left_cards.finished", turn_id=open_card.turn_id, state=state)
    return True


async def _finish(services: Services, live: LiveCard, open_card: OpenCard) -> str:
    _, reply = await services.store.record_reply(
        open_card.context, turn_id=open_card.turn_id, cards=[say_both("unfinished")]
    )
    if not reply:
        with contextlib.suppress(Undeliverable):
            await live.withdraw()
        return "withdrawn"
    target = Target(open_card.reply_to, open_card.context.chat_id, open_card.in_thread)
    names = services.people.of(open_card.context.tenant_key).known
    out = Outgoing(open_card.context, open_card.turn_id, reply, target, names)
    return (await send(services, out, stream=live)).state
