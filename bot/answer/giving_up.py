"""A job that gets no other attempt: people read that something went wrong, operators find the job.

Whoever asked outright is owed a word. It is stored before it is sent, like every reply; where the
memory is what fails, it is sent all the same. The job itself stays in the queue as failed.
"""

from __future__ import annotations

import structlog

from bot.answer.composing import compose
from bot.answer.hearing import Heard
from bot.answer.question import Turn, begin
from bot.feishu import events
from bot.feishu.events import MalformedEvent, MessageEvent
from bot.group.decisions import Decision, IncomingMessage, Reason
from bot.languages import language_of
from bot.mentions import Person
from bot.queue.jobs import EVENT_TASK, Job
from bot.reply.delivery import deliver
from bot.reply.finding import OutcomeUnknown, doubt_of, find_sent
from bot.services import Services
from bot.telemetry import metrics
from memory.errors import StoreError
from memory.models import StoredCard

log = structlog.get_logger()

SORRY = {
    "zh": "抱歉，处理这条消息时出了问题，没能回答。请再问一次；"
    "如果还是不行，请把编号 {reference} 告诉管理员。",
    "en": "Sorry, something went wrong with this message and I could not answer it. Please ask "
    "again; if it happens again, give the reference {reference} to whoever runs me.",
}


async def give_up(services: Services, job: Job, reason: str) -> bool:
    """Says so to who asked, with the job's number as reference; whether that is what they read.

    Raises what keeps it from that.
    """
    metrics.GIVEN_UP.labels(reason=reason).inc()
    log.error("job.given_up", job=job.id, task=job.task, attempt=job.attempt, reason=reason)
    event = _message(job)
    if event is None or reason == OutcomeUnknown.reason:
        return False
    bot = await services.own_person.look_up()
    if event.chat_type != "p2p" and not events.mentions_bot(event, bot.open_id):
        return False  # nobody was promised an answer
    turn = begin(services, event, _heard(event, bot), bot, job.received_ms)
    text = SORRY[language_of([turn.question])].format(reference=f"J{job.id}")
    excuse = compose(services, turn, text, nothing=text)
    reply = await _stored(services, turn, excuse)
    for card in reply:
        await _send(services, turn, card, job)
    return [card.content for card in reply] == excuse


def _message(job: Job) -> MessageEvent | None:
    """The message that the job is about; None for other jobs."""
    if job.task != EVENT_TASK:
        return None
    try:
        envelope = events.parse_envelope(job.args["payload"])
        if envelope.event_type != events.MESSAGE_RECEIVED:
            return None
        return events.parse_message(envelope)
    except MalformedEvent:
        return None


def _heard(event: MessageEvent, bot: Person) -> Heard:
    message = IncomingMessage(
        message_id=event.message_id,
        author="",
        author_id=event.sender_open_id,
        text=event.text,
        timestamp=event.create_time_ms,
        chat_type=event.chat_type,
        mentions_bot=events.mentions_bot(event, bot.open_id),
    )
    return Heard(message, Decision(True, Reason.EXPLICIT_TRIGGER, "explicit"))


async def _stored(services: Services, turn: Turn, cards: list[str]) -> tuple[StoredCard, ...]:
    """The reply that counts: an earlier one if there is any, else the excuse."""
    store = services.store
    try:
        opened = await store.open_turn(turn.context, turn_id=turn.id, content=turn.question)
        if opened.state != "open":
            return opened.reply
        _, reply = await store.record_reply(turn.context, turn_id=turn.id, cards=cards)
    except StoreError as exc:
        log.warning("job.excuse_not_stored", turn_id=turn.id, error=type(exc).__name__)
        return tuple(StoredCard(number, text, "pending") for number, text in enumerate(cards))
    return reply


async def _send(services: Services, turn: Turn, card: StoredCard, job: Job) -> None:
    if card.status != "pending":
        return
    doubt = doubt_of(services, job.maybe_sent_ms)
    names = turn.names.known
    sent = await find_sent(
        services.feishu,
        turn.target,
        doubt,
        turn_id=turn.id,
        chunk=card.chunk,
        content=card.content,
        names=names,
        file=card.file,
    ) or await deliver(
        services.feishu,
        turn.target,
        turn_id=turn.id,
        chunk=card.chunk,
        content=card.content,
        names=names,
        file=card.file,
    )
    try:
        await services.store.mark_sent(
            turn.context,
            turn_id=turn.id,
            chunk=card.chunk,
            content=sent.content,
            message_id=sent.message_id,
        )
    except StoreError as exc:
        log.warning("job.excuse_not_stored", turn_id=turn.id, error=type(exc).__name__)
