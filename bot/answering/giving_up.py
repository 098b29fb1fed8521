"""Gives up a job that gets no other attempt: tells people that something went wrong, and leaves the
job to operators.

A person who addressed the bot gets an apology. Like every reply it is stored before it is sent; if
the memory is what fails, it is sent anyway. The job stays in the queue as failed."""

from __future__ import annotations

import structlog

from bot.answering.hearing import HearingResult
from bot.answering.question import Turn, turn_of_request
from bot.answering.reply import compose
from bot.answering.request_chat import RequestChat, chat_of
from bot.answering.texts import say
from bot.feishu import events
from bot.feishu.errors import FeishuError, FeishuFailure
from bot.feishu.events import MalformedEvent
from bot.listening.decisions import Decision, IncomingMessage, Reason
from bot.listening.turn_request import TurnRequest
from bot.outbox.finding import OutcomeUnknown
from bot.outbox.sending import Outgoing, send
from bot.process import metrics
from bot.queue.consumer import Lease
from bot.queue.jobs import EVENT_TASK, Job, Later
from bot.services import Services
from bot.text.languages import language_of
from memory.errors import StoreError
from memory.models import StoredCard, apology_outcome

log = structlog.get_logger()


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
    is_read = await _send(services, turn, reply, lease)
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
        open_turn = await store.open_turn(turn.context, turn_id=turn.id, content=turn.question)
        if open_turn.state != "open":
            return open_turn.reply
        _, reply = await store.record_reply(
            turn.context, turn_id=turn.id, cards=cards, means=apology_outcome("given_up")
        )
    except StoreError as exc:
        log.warning("job.excuse_not_stored", turn_id=turn.id, error=type(exc).__name__)
        return tuple(StoredCard(number, text, "pending") for number, text in enumerate(cards))
    return reply


async def _send(
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
