"""One message, from the queue to a stored and delivered reply. Read `handle_message` top down.

At-least-once in, exactly-once out: every step can be repeated. A reply is stored before it is sent,
a stored reply is never made again, and Feishu recognises a repeated send by its uuid.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import structlog

from bot import metrics
from bot.agents.manager import Answer, ModelUnavailable, Prompt
from bot.delivery import Target, Undeliverable, deliver
from bot.feishu import events, markup, splitting
from bot.feishu.events import MessageEvent
from bot.mentions import NOBODY, Person, address_reply, from_card, to_card
from bot.services import Services
from bot.working import showing_work
from memory.context import Message
from memory.models import OpenTurn, StoredCard, StoredMessage
from memory.scope import AgentMemoryContext, memory_context, thread_root

log = structlog.get_logger()

# People wait for an answer at most this long after the acknowledgement (s); sending takes some.
_ANSWER_WITHIN_S = 56.0
_LEAST_MODEL_TIME_S = 8.0

SORRY = {
    "zh": "抱歉，我暂时无法得到模型的回答。你的问题已经记下，请稍后再问一次。",
    "en": "Sorry, I cannot get an answer from the model right now. Your question is kept; "
    "please ask again in a moment.",
}
UNSUPPORTED = (
    "这种消息我还读不了，请用文字发给我。 / "
    "I cannot read this kind of message yet; please send text."
)


@dataclass(frozen=True, slots=True)
class Turn:
    """A message that will be answered: whose memory, in which thread, by and to whom."""

    event: MessageEvent
    context: AgentMemoryContext
    question: str
    bot: Person
    received_ms: int

    @property
    def id(self) -> str:
        return self.event.message_id

    @property
    def target(self) -> Target:
        in_thread = self.event.chat_type != "p2p" and self.context.root_id != "main"
        return Target(self.event.message_id, self.event.chat_id, in_thread)


async def handle_message(services: Services, event: MessageEvent, received_ms: int) -> None:
    """Answers one message, or stays silent. Raises what is worth another attempt."""
    bot = await services.identity.person()
    services.people.learn((m.open_id, m.name) for m in event.mentions)
    respond, reason = should_answer(event, bot.open_id)
    metrics.DECISIONS.labels(respond=respond, reason=reason).inc()
    log.info("decision", message_id=event.message_id, respond=respond, reason=reason)
    if not respond:
        return

    turn = begin(services, event, bot, received_ms)
    structlog.contextvars.bind_contextvars(conversation_id=turn.context.conversation_id)
    with metrics.IN_FLIGHT.track_inprogress():
        opened, _ = await asyncio.gather(
            _open(services, turn), services.people.look_up(_people_of(turn))
        )
        reply = opened.reply
        if opened.state == "open":
            async with showing_work(services.feishu, turn.id):
                answer = await _answer(services, turn, opened)
            reply = await _store(services, turn, answer)
        outcome = await _deliver(services, turn, opened.state, reply)
    _report(services, turn, opened, outcome)


def should_answer(event: MessageEvent, bot_open_id: str) -> tuple[bool, str]:
    """Whether a message calls for an answer, and why (pure)."""
    if event.sender_open_id == bot_open_id or event.sender_type == "app":
        return False, "own_message"
    if event.chat_type == "p2p":
        return (event.sender_type == "user", "p2p")
    if not events.mentions_bot(event, bot_open_id):
        return False, "no_trigger"
    return True, "explicit_trigger"


def begin(services: Services, event: MessageEvent, bot: Person, received_ms: int) -> Turn:
    """Resolves thread, subject and question of a message (pure but for the settings)."""
    root = thread_root(
        message_id=event.message_id,
        root_id=event.root_id or None,
        chat_type=event.chat_type,
        reply_in_thread=services.settings.reply_in_thread,
    )
    context = memory_context(
        chat_id=event.chat_id,
        root=root,
        subject=subject_of(event, bot.open_id),
        actor=event.sender_open_id,
        tenant_key=event.tenant_key,
    )
    question = events.question_text(event, bot.open_id) or event.text
    return Turn(event, context, question, bot, received_ms)


def subject_of(event: MessageEvent, bot_open_id: str) -> str:
    """Whose memory is meant: the first mentioned human, else the sender (by open_id)."""
    for mention in event.mentions:
        is_person = mention.open_id and not mention.is_bot and mention.open_id != bot_open_id
        if is_person:
            return mention.open_id
    return event.sender_open_id


async def _open(services: Services, turn: Turn) -> OpenTurn:
    with _stage("memory_load"):
        return await services.store.open_turn(
            turn.context,
            turn_id=turn.id,
            content=turn.question,
            actor_name=services.people.name(turn.event.sender_open_id),
            history_limit=services.settings.history_messages,
        )


async def _answer(services: Services, turn: Turn, opened: OpenTurn) -> Answer:
    """The model's answer, or an honest sentence when there is none in time."""
    if not turn.question.strip():
        return Answer(UNSUPPORTED)
    spent = services.clock() - turn.received_ms / 1000
    left = max(_LEAST_MODEL_TIME_S, _ANSWER_WITHIN_S - spent)
    try:
        with _stage("model"):
            answer = await services.manager.answer(
                _prompt(services, turn, opened),
                timeout_s=min(left, services.settings.model_timeout_seconds),
            )
    except ModelUnavailable as exc:
        metrics.MODEL_FAILURES.labels(reason=exc.reason).inc()
        log.error("model.unavailable", turn_id=turn.id, reason=exc.reason)
        return Answer(SORRY["zh" if _is_chinese(turn.question) else "en"])
    metrics.TOKENS.labels(direction="in").inc(answer.input_tokens)
    metrics.TOKENS.labels(direction="out").inc(answer.output_tokens)
    return answer


def _prompt(services: Services, turn: Turn, opened: OpenTurn) -> Prompt:
    history = tuple(_told(services, turn, message) for message in opened.history)
    return Prompt(
        bot_name=turn.bot.name,
        question=history[-1].content if history else turn.question,
        history=history[:-1],
        subject=services.people.name(turn.context.user_id),
        working_memory=opened.working_memory,
        now=datetime.now().astimezone(),
    )


def _told(services: Services, turn: Turn, message: StoredMessage) -> Message:
    """A stored message as the model is given it: at-tags as names, people labelled in groups."""
    if message.role == "assistant":
        spoken = from_card(message.content, services.people.known, unescape=markup.unescape)
        return Message("assistant", spoken)
    if turn.event.chat_type == "p2p":
        return Message("user", message.content)
    author = message.actor_name or services.people.name(message.actor_id or "")
    return Message("user", f"{' '.join(author.split())}: {message.content}", author=author)


async def _store(services: Services, turn: Turn, answer: Answer) -> tuple[StoredCard, ...]:
    """Composes the exact card texts and stores them as pending, before anything is sent."""
    with _stage("memory_save"):
        _, stored = await services.store.record_reply(
            turn.context,
            turn_id=turn.id,
            cards=compose(services, turn, answer.text),
            tool_calls=answer.tool_calls,
        )
    return stored


def compose(services: Services, turn: Turn, text: str) -> list[str]:
    """The markdown of each card: addressed to the person who asked, inert, within the limits."""
    sender = services.people.person(turn.event.sender_open_id)
    group = turn.event.chat_type != "p2p"
    roster = services.people.roster(_people_of(turn)) if group else NOBODY
    spoken = address_reply(
        text,
        sender=sender,
        agent=turn.bot,
        sender_type=turn.event.sender_type,
        roster=roster,
        chat_type=turn.event.chat_type,
    )
    markdown = to_card(spoken, roster, escape=markup.card_markdown, preferred=sender.open_id)
    return splitting.split_markdown(markdown)


async def _deliver(
    services: Services, turn: Turn, state: str, reply: tuple[StoredCard, ...]
) -> str:
    """Sends what is pending, card by card; what was sent is what is marked sent."""
    if state in ("sent", "failed", "cancelled"):
        return "duplicate" if state == "sent" else state
    for card in reply:
        if card.status != "pending":
            continue
        try:
            with _stage("send"):
                sent = await deliver(
                    services.feishu,
                    turn.target,
                    turn_id=turn.id,
                    chunk=card.chunk,
                    content=card.content,
                )
        except Undeliverable as exc:
            await services.store.mark_failed(turn.context, turn_id=turn.id, error=exc.reason)
            return "failed"
        with _stage("memory_save"):
            await services.store.mark_sent(
                turn.context,
                turn_id=turn.id,
                chunk=card.chunk,
                content=sent.content,
                message_id=sent.message_id,
            )
    return "sent"


def _people_of(turn: Turn) -> list[str]:
    mentioned = [m.open_id for m in turn.event.mentions if m.open_id != turn.bot.open_id]
    return [turn.event.sender_open_id, turn.context.user_id, *mentioned]


def _is_chinese(text: str) -> bool:
    return any("\u3400" <= character <= "\u9fff" for character in text)


@contextlib.contextmanager
def _stage(name: str) -> Iterator[None]:
    started = time.perf_counter()
    try:
        yield
    finally:
        metrics.STAGE_SECONDS.labels(stage=name).observe(time.perf_counter() - started)


def _report(services: Services, turn: Turn, opened: OpenTurn, outcome: str) -> None:
    seconds = services.clock() - turn.received_ms / 1000
    metrics.TURNS.labels(outcome=outcome).inc()
    metrics.TURN_SECONDS.observe(seconds)
    log.info(
        "turn",
        turn_id=turn.id,
        outcome=outcome,
        attempt=opened.attempts,
        history=len(opened.history),
        seconds=round(seconds, 3),
    )
