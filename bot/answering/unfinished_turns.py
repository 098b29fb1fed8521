"""Ends turns that no job will complete.

`give_up` is for a job that gets no other attempt. A person who addressed the bot gets an apology.
Like every reply it is stored before it is sent; if the memory is what fails, it is sent anyway. The
job stays in the queue as failed, for operators.

A stored reply without a job is left when an operator drops the job, or when a queue is lost. A
worker sends it, because it was promised.

A turn whose worker died is tried again and finishes its card itself. When the attempts are used up,
the card is finished here: with the stored reply, or with an honest sentence that is stored first.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

import structlog

from bot.answering.hearing import HearingResult
from bot.answering.question import Turn, turn_of_request
from bot.answering.reply import compose
from bot.answering.request_chat import RequestChat, chat_of
from bot.answering.texts import say
from bot.feishu import events
from bot.feishu.errors import FeishuError, FeishuFailure
from bot.feishu.events import MalformedEvent
from bot.feishu.other_events import place_of_comment_key
from bot.listening.decisions import Decision, IncomingMessage, Reason
from bot.listening.turn_request import TurnRequest
from bot.outbox.delivery import Aside, InComment, Target, Undeliverable
from bot.outbox.finding import OutcomeUnknown
from bot.outbox.live_card import LiveCard
from bot.outbox.sending import Outgoing, send
from bot.outbox.texts import say_both
from bot.process import metrics
from bot.queue.consumer import Lease
from bot.queue.inbox import QueueUnavailable
from bot.queue.jobs import EVENT_TASK, Job, Later
from bot.queue.table import JobTable
from bot.services import Services
from bot.text.languages import language_of
from memory.errors import StoreError, StoreUnavailable
from memory.models import StoredCard, apology_outcome
from memory.scope import MAIN_ROOT, AgentMemoryContext, is_document_chat, memory_context
from memory.tables.cards import CardStore, OpenCard

log = structlog.get_logger()
_EVERY_S = 60.0
_OLDER_S = 600
_AT_ONCE = 20

LEFT_AFTER_S = 560  # an answer may flow for nine minutes
_UNTOUCHED_S = 60
_LEFT_CARDS_EVERY_S = 15.0


async def give_up(services: Services, lease: Lease, reason: str) -> bool:
    """Tells the asker, with the job's number as reference. Returns whether they can read it.

    Raises `Later` while Feishu cannot be reached.
    """
    try:
        apology_sent = await _excuse(services, lease, reason)
    except FeishuFailure as exc:
        if not isinstance(exc, FeishuError) or exc.action.may_pass:
            raise Later(type(exc).__name__) from exc
        apology_sent = False
    job = lease.job
    metrics.GIVEN_UP.labels(reason=reason).inc()
    log.error("job.given_up", job=job.id, task=job.task, attempt=job.attempt, reason=reason)
    return apology_sent


async def _excuse(services: Services, lease: Lease, reason: str) -> bool:
    request = _message(lease.job)
    if request is None or reason == OutcomeUnknown.reason:
        return False
    bot = await services.own_person.look_up()
    if request.chat_type != "p2p" and not request.is_for(bot.open_id):
        return False  # nobody was promised an answer
    chat = chat_of(services, request, bot)
    turn = turn_of_request(chat, _hearing_of(chat), lease.job.received_ms)
    text = say("gave-up", language_of([turn.question]), reference=f"J{lease.job.id}")
    excuse = compose(services, turn, text, nothing=text)
    reply = await _store_apology(services, turn, excuse)
    is_read = await _send_apology(services, turn, reply, lease)
    return is_read and [card.content for card in reply] == excuse


def _message(job: Job) -> TurnRequest | None:
    """Returns the message that the job is about; None for other jobs."""
    if job.task != EVENT_TASK:
        return None
    try:
        envelope = events.parse_envelope(job.args["payload"])
        if envelope.event_type != events.MESSAGE_RECEIVED:
            return None
        return TurnRequest.of(events.parse_message(envelope))
    except MalformedEvent:
        return None


def _hearing_of(chat: RequestChat) -> HearingResult:
    request = chat.request
    message = IncomingMessage(
        message_id=request.message_id,
        author="",
        author_id=request.sender_open_id,
        text=request.text,
        timestamp=request.create_time_ms,
        chat_type=request.chat_type,
        mentions_bot=request.is_for(chat.bot.open_id),
    )
    return HearingResult(message, Decision(True, Reason.EXPLICIT_TRIGGER, "explicit"))


async def _store_apology(
    services: Services, turn: Turn, cards: list[str]
) -> tuple[StoredCard, ...]:
    """Returns the reply that counts: an earlier one if there is any, else the apology."""
    store = services.store
    try:
        open_turn = await store.begin_turn(turn.context, turn_id=turn.id, content=turn.question)
        if open_turn.state != "open":
            return open_turn.reply
        _, reply = await store.record_reply(
            turn.context, turn_id=turn.id, cards=cards, means=apology_outcome("given_up")
        )
    except StoreError as exc:
        log.warning("job.excuse_not_stored", turn_id=turn.id, error=type(exc).__name__)
        return tuple(StoredCard(number, text, "pending") for number, text in enumerate(cards))
    return reply


async def _send_apology(
    services: Services, turn: Turn, reply: tuple[StoredCard, ...], lease: Lease
) -> bool:
    """Returns whether the asker can read it now."""
    since_ms = lease.job.maybe_sent_ms
    out = Outgoing(turn.context, turn.id, reply, turn.target, turn.names.known, since_ms=since_ms)
    try:
        outcome = await send(services, out, lease=lease)
    except StoreError as exc:
        log.warning("job.excuse_not_stored", turn_id=turn.id, error=type(exc).__name__)
        return True
    return outcome.state == "sent" and all(card.status != "failed" for card in reply)


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
    return sum([await _send_pending(services, row) for row in rows if keys[row["turn_id"]] in left])


async def _send_pending(services: Services, row: Mapping[str, Any]) -> bool:
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
