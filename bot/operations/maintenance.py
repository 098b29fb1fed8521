"""Prepares a worker when it starts, and runs its loops beside the turns: presence, retention,
members, records and rates.

At the start it reads the texts of cards, asks Feishu who the bot is, and plays a few turns for
Postgres: the first turn of a connection takes five times as long as the tenth. The turns are those
of nobody, and their transaction is rolled back.

Each loop runs for as long as the worker works, and logs what goes wrong. Features register loops
of their own (`bot.hooks`).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import signal
import time
import uuid
from datetime import UTC, datetime

import psycopg
import structlog

import bot.answering.texts
import bot.outbox.texts
from bot.feishu.errors import FeishuFailure
from bot.feishu.transport import OwnSlots, SharedPace, SharedSlots
from bot.listening.conversation_store import (
    ChatConversations,
    decision_args,
    heard_args,
    tell_conversation_args,
)
from bot.listening.decisions import IncomingMessage, decide_start
from bot.listening.transcript import HeldTranscripts, MessageRecord
from bot.process import metrics, plan
from bot.process.plan import HEARTBEAT_S, RunDirectory
from bot.queue.inbox import QueueUnavailable
from bot.queue.jobs import EVENT_TASK, Job
from bot.queue.table import JobTable, ending_statement
from bot.services import Services
from bot.settings import Settings
from memory.backends.pool import Pool
from memory.backends.postgres import UndoneRpc
from memory.errors import StoreError, StoreUnavailable
from memory.recall.passages import recall_at_once
from memory.scope import AgentMemoryContext, FeishuPerson, memory_context
from memory.store import MemoryStore
from memory.tables.cards import CardStore
from memory.tables.operations import Operations

log = structlog.get_logger()
_TURNS = 3  # the second recalls the first; the third goes on in its thread
_TIMEOUT_MS = 120_000
_QUESTION = "When does the supplier deliver the samples?"
_ORDER_EVERY_S = 3600.0
_KEYS_KEPT_H = 48
_FAILED_KEPT_DAYS = 30  # unless RETENTION_DAYS says otherwise: they hold people's words
_MEMBERS_EVERY_S = 60.0
_MEMBERS_AT_MOST_EVERY_S = 1.0
_RECORDS_EVERY_S = 2.0
_CALLS_EVERY_ROUNDS = 15  # rounds: no limit of a few seconds hangs on them
_RATES_EVERY_S = 1.0


async def prepare_first_answer(services: Services) -> None:
    """What the first question would read or ask besides; Feishu may be away."""
    for texts in (bot.outbox.texts.CATALOGUE, bot.answering.texts.CATALOGUE):
        texts.read()
    with contextlib.suppress(FeishuFailure):
        await services.own_person.look_up()


async def rehearse_turns(settings: Settings, pool: Pool) -> None:
    """Once, where the memory is in the worker's database. What goes wrong is only logged."""
    if settings.supabase_url:
        return
    began = time.monotonic()
    rpc = UndoneRpc(pool, sharing=settings.sharing)
    try:
        async with rpc.undone():
            await _play_turns(rpc, settings)
    except (StoreError, psycopg.Error) as exc:
        log.info("rehearsal.failed", error=type(exc).__name__)
        return
    log.debug("rehearsal.done", seconds=round(time.monotonic() - began, 3))


async def _play_turns(rpc: UndoneRpc, settings: Settings) -> None:
    name, root = uuid.uuid4().hex, ""
    transcripts = HeldTranscripts()
    for number in range(_TURNS):
        question_id = f"om_{number}_{name}"
        root = root if number == _TURNS - 1 else question_id
        context = memory_context(
            chat_id=f"oc_{name}",
            root=root,
            subject=f"ou_{name}",
            actor=f"ou_{name}",
            chat_type="group",
        )
        await _play_turn(rpc, settings, context, question_id, transcripts)
        await _play_line(rpc, settings, context, f"om_{number}_line_{name}", transcripts)


async def _play_turn(
    rpc: UndoneRpc,
    settings: Settings,
    context: AgentMemoryContext,
    question_id: str,
    transcripts: HeldTranscripts,
) -> None:
    """A question, its card, its answer."""
    store, cards = MemoryStore(rpc), CardStore(rpc)
    message, now = _message(context, question_id, asks=True), datetime.now(UTC)
    transcript = transcripts.of(context.tenant_key, context.chat_id)
    open_turn = await store.begin_turn(
        context,
        turn_id=question_id,
        content=_QUESTION,
        history_limit=settings.history_messages,
        fold_after=settings.summary_after_messages,
        hearing_args=heard_args(message.record(), _TIMEOUT_MS, transcript),
        decision=decision_args(message, decide_start(message, "")),
        recent_s=3600,
        recall={**(recall_at_once(context, _QUESTION, now=now, k=5) or {}), "words": None},
        elsewhere=True,
    )
    if open_turn.conversation:
        transcripts.conversation(context.tenant_key, transcript, open_turn.conversation)
    card = await cards.keep(
        context,
        turn_id=question_id,
        card_id=f"card_{question_id}",
        reply_to=question_id,
        in_thread=True,
    )
    await cards.mark_shown(card, f"{question_id}_card")
    await store.record_reply(
        context, turn_id=question_id, cards=[_QUESTION], source_ids=[f"{question_id}_given"]
    )
    record = MessageRecord(
        "",
        "",
        _QUESTION,
        message.timestamp,
        True,
        f"{question_id}_card",
        context.root_id,
        ours=True,
    )
    await store.mark_sent(
        context,
        turn_id=question_id,
        chunk=0,
        content=_QUESTION,
        message_id=record.message_id,
        telling=tell_conversation_args([message.record(), record], record.timestamp, _TIMEOUT_MS),
        then=ending_statement(Job(0, EVENT_TASK, {}, "", 1), 0),
    )


async def _play_line(
    rpc: UndoneRpc,
    settings: Settings,
    context: AgentMemoryContext,
    text: str,
    transcripts: HeldTranscripts,
) -> None:
    """A message to nobody in particular, where the bot takes part."""
    chat = ChatConversations(rpc, context, transcripts)
    message = _message(context, text, asks=False)
    likely = decide_start(message, "")
    await chat.hear(message, settings, timeout_ms=_TIMEOUT_MS, likely=likely)
    await chat.log_decision(message, likely, {text: message.timestamp})


def _message(context: AgentMemoryContext, message_id: str, *, asks: bool) -> IncomingMessage:
    return IncomingMessage(
        message_id,
        "",
        context.actor_id,
        _QUESTION,
        int(time.time() * 1000),
        mentions_bot=asks,
    )


class WorkerPresence:
    """The place of this process. Under a supervisor its workers share one file of slots; among
    supervisors and workers by themselves each has its share of every limit. `worker_died` is set
    when the supervisor says that another worker died."""

    def __init__(self, settings: Settings) -> None:
        self.worker_died = asyncio.Event()
        self._slot = plan.worker_slot()
        self._board = RunDirectory(settings.data_dir) if self._slot else None
        self.pace = SharedPace(SharedSlots(self._board.pace) if self._board else OwnSlots())

    def share_with(self, everywhere: int) -> None:
        """So many workers, on all machines, send in the name of the app."""
        here = max(self._board.alive(), 1) if self._board else 1  # it may not have said so yet
        share = min(1.0, here / max(everywhere, here))
        if not math.isclose(share, self.pace.share):
            log.info("feishu.share", workers_here=here, workers=everywhere, share=round(share, 3))
        self.pace.share = share

    async def keep(self) -> None:
        """Says every two seconds that this worker lives, until it is cancelled."""
        if self._board is None:
            return
        # Before this worker is known as one: the signal would end who does not expect it.
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, self.worker_died.set)
        attendance = self._board.announce(self._slot)
        try:
            while True:
                attendance.beat()
                await asyncio.sleep(HEARTBEAT_S)
        finally:
            attendance.withdraw()


async def tend_retention(table: JobTable, services: Services) -> None:
    """Once an hour, for as long as the worker works."""
    while True:
        try:
            await table.prune(hours=_KEYS_KEPT_H)
        except QueueUnavailable as exc:
            log.warning("queue.not_pruned", error=str(exc))
        await _forget_records(table, services.settings.trace_days)
        await _forget_failed(table, services.settings.retention_days or _FAILED_KEPT_DAYS)
        await _apply_retention(table, services)
        await asyncio.sleep(_ORDER_EVERY_S)


async def _forget_records(table: JobTable, days: int) -> None:
    try:
        await table.forget_turn_records(days=days)
    except QueueUnavailable as exc:
        log.warning("records.not_pruned", error=str(exc))


async def _forget_failed(table: JobTable, days: int) -> None:
    """Failed jobs, and what the memory refused, are kept for operators only so long."""
    try:
        forgotten_jobs = await table.forget_failed(days=days)
    except QueueUnavailable as exc:
        log.warning("queue.not_pruned", error=str(exc))
    else:
        if forgotten_jobs:
            log.warning("queue.failed_forgotten", days=days, deleted=forgotten_jobs)


async def _apply_retention(table: JobTable, services: Services) -> None:
    days = services.settings.retention_days
    if not days:
        return
    try:
        if old_jobs := await table.forget_old(days=days):
            log.warning("queue.old_forgotten", days=days, deleted=old_jobs)
    except QueueUnavailable as exc:
        log.warning("queue.not_pruned", error=str(exc))
    try:
        deleted_rows = await Operations(services.rpc).apply_retention(days)
    except StoreError as exc:
        away = isinstance(exc, StoreUnavailable)
        log.warning(
            "retention.postponed" if away else "retention.refused",
            error=type(exc).__name__,
            code=exc.code,
        )
    else:
        log.info("retention", days=days, deleted=deleted_rows)


async def tend_members(services: Services, *, every_s: float = _MEMBERS_EVERY_S) -> None:
    """Once a minute, and soon after there is a new chat, for as long as the worker works."""
    membership, has_found = services.membership, False
    while membership:
        membership.news.clear()
        try:
            has_found = has_found or await membership.find() >= 0
            await membership.refresh()
        except StoreUnavailable as exc:
            log.warning("members.memory_away", error=type(exc).__name__, code=exc.code)
        except StoreError as exc:
            log.error("members.refused", error=type(exc).__name__, code=exc.code)
        await asyncio.sleep(_MEMBERS_AT_MOST_EVERY_S)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(every_s):
                await membership.news.wait()


async def tend_turn_records(table: JobTable, services: Services) -> None:
    """Every two seconds, for as long as the worker works, and once more at its end."""
    try:
        for round in itertools.count(1):
            await write_turn_records(table, services)
            if round % _CALLS_EVERY_ROUNDS == 0:
                await write_calls(table, services)
            await asyncio.sleep(_RECORDS_EVERY_S)
    finally:
        await write_turn_records(table, services)
        await write_calls(table, services)


async def write_turn_records(table: JobTable, services: Services) -> None:
    """Writes what waits. A database that is away gets it later."""
    settings = services.settings
    waiting_records = services.records.take()
    limits = (settings.usage_limit_person, settings.usage_limit_chat)
    try:
        if waiting_records:
            rows = [record.row() for record in waiting_records]
            await table.keep_turn_records(rows, keep=settings.trace_days > 0)
        if any(limits):
            day = services.now().date()
            people, chats = await table.usage_exhausted(day, *limits)
            services.allowance.hear(day, people, chats)
    except QueueUnavailable as exc:
        services.records.put_back(waiting_records)
        log.warning("records.wait", error=str(exc), records=len(waiting_records))


async def write_calls(table: JobTable, services: Services) -> None:
    """Adds up what was used beside the answers, and hears what is left of the month's calls."""
    usage = services.tally.take()
    if not usage:
        return
    try:
        used_calls = await table.keep_calls(services.now().date(), [one._asdict() for one in usage])
    except QueueUnavailable as exc:
        services.tally.put_back(usage)
        log.warning("calls.wait", error=str(exc))
        return
    metrics.FEISHU_MONTH_CALLS.set(used_calls)
    level = services.quota.hear(used_calls)
    if level:
        log.warning(
            "feishu.quota",
            used=used_calls,
            calls_per_month=services.quota.calls,
            next_step="a larger plan, STREAM_REPLIES=false, or FEISHU_CALLS_PER_MONTH as it is",
        )


async def tend_person_rates(table: JobTable, services: Services) -> None:
    """Every second, for as long as the worker works."""
    while services.rates.per_minute:
        await asyncio.sleep(_RATES_EVERY_S)
        await share_rates_once(table, services)
        services.rates.forget_idle(services.clock())


async def share_rates_once(table: JobTable, services: Services) -> None:
    """What could not be shared is shared with the next round."""
    rates = services.rates
    spent_requests = rates.take_unshared()
    if not spent_requests:
        return
    try:
        rates.hear(await table.share_person_rates(spent_requests, rates.per_minute))
    except QueueUnavailable as exc:
        rates.put_back(spent_requests)
        log.warning("rates.wait", error=str(exc))


async def is_first_to_tell(table: JobTable, services: Services, asker: FeishuPerson) -> bool:
    """Whether the person is to be told that requests are skipped: by one worker, once."""
    await share_rates_once(table, services)
    try:
        return await table.tell_person_rate(asker)
    except QueueUnavailable as exc:
        log.warning("rates.not_told", error=str(exc))
        return False
