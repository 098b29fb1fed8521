"""One message, from the queue to a stored and delivered reply. Read `handle_message` top down.

At-least-once in, exactly-once out: every step can be repeated. A reply is stored before it is sent,
a stored reply is never made again, and Feishu recognises a repeated send by its uuid.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from bot import incoming, metrics, timing
from bot.agents.manager import Answer, ModelUnavailable
from bot.agents.progress import OnProgress, Progress
from bot.buttons import Reply, card_buttons, reply_of
from bot.command_answers import Asked, answer_command
from bot.commands import parse, quietens
from bot.decisions import Reason
from bot.delivery import REPLACING, Delivered, Target, Undeliverable, deliver
from bot.feishu import events, markup, splitting
from bot.feishu.events import MessageEvent, Recall
from bot.languages import Language, has_chinese, language_of
from bot.listening import Heard, answered, listen
from bot.mentions import ALL_NAMES, NOBODY, Person, address_reply, from_card, to_card
from bot.partial import showable
from bot.prompting import Scene, build_prompt
from bot.services import Services
from bot.streaming import CardStream, Opening, begin_stream
from bot.timing import stage
from bot.transcript import transcript
from bot.working import showing_work
from memory.buttons import ChatType
from memory.errors import StoreError
from memory.models import OpenTurn, StoredCard
from memory.recall import RecallScope, needs_recall, render
from memory.scope import MAIN_ROOT, AgentMemoryContext, memory_context, thread_root
from memory.tokens import estimate_tokens

log = structlog.get_logger()

# People wait for an answer at most this long after the acknowledgement (s); sending takes some.
_ANSWER_WITHIN_S = 56.0
_LEAST_MODEL_TIME_S = 8.0
_TRANSCRIPT_TOKENS = 2000
_OVER = ("sent", "failed", "cancelled")

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
    """A message that will be answered: whose memory, in which thread, by and to whom.

    `reply_to` is the Feishu message the answer hangs under; the turn's id may be one of ours.
    """

    event: MessageEvent
    heard: Heard
    context: AgentMemoryContext
    question: str
    bot: Person
    received_ms: int
    reply_to: str
    on_progress: OnProgress | None = None

    @property
    def id(self) -> str:
        return self.event.message_id

    @property
    def in_group(self) -> bool:
        return self.event.chat_type != "p2p"

    @property
    def target(self) -> Target:
        in_thread = self.in_group and self.context.root_id != MAIN_ROOT
        return Target(self.reply_to, self.event.chat_id, in_thread)

    @property
    def chat_type(self) -> ChatType:
        return "group" if self.in_group else "p2p"


Answering = Callable[[Services, Turn, OpenTurn], Awaitable[Reply]]


async def handle_message(
    services: Services,
    event: MessageEvent,
    received_ms: int,
    *,
    reply_to: str = "",
    answering: Answering | None = None,
) -> None:
    """Answers one message, or stays silent. Raises what is worth another attempt.

    A click comes as a message of ours: then `reply_to` is the card that was clicked, and
    `answering` what takes the place of commands and model, if anything.
    """
    timing.begin()
    bot = await services.identity.person()
    services.people.learn((m.open_id, m.name) for m in event.mentions)
    await services.people.look_up([event.sender_open_id])
    heard = await listen(services, event, bot)
    if not heard.decision.respond or _unreadable_in_group(event):
        return

    turn = begin(services, event, heard, bot, received_ms, reply_to)
    with metrics.IN_FLIGHT.track_inprogress():
        opened = await _open(services, turn)
        reply = opened.reply
        stream = await _stream(services, turn, opened)
        if opened.state == "open":
            if stream:
                turn, at_work = replace(turn, on_progress=stream.progress), stream.running()
            else:
                at_work = showing_work(services.feishu, turn.reply_to)
            async with at_work:
                answer = await (answering or _reply)(services, turn, opened)
            reply = await _store(services, turn, answer)
        outcome = await _deliver(services, turn, opened, reply, stream)
    _report(services, turn, opened, outcome)


async def handle_recall(services: Services, recall: Recall) -> None:
    """A message was taken back: it leaves transcript and memory, and is not answered any more."""
    state = await services.store.recall(recall.message_id, recall.chat_id)
    if services.queue:
        await asyncio.to_thread(services.queue.forget, message_id=recall.message_id)
    log.info("recalled", message_id=recall.message_id, turn_state=state)


def _unreadable_in_group(event: MessageEvent) -> bool:
    """A kind of message that carries no text is answered in p2p only."""
    return event.chat_type != "p2p" and not event.text.strip()


def begin(
    services: Services,
    event: MessageEvent,
    heard: Heard,
    bot: Person,
    received_ms: int,
    reply_to: str = "",
) -> Turn:
    """Resolves thread, subject and question of a message."""
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
    structlog.contextvars.bind_contextvars(conversation_id=context.conversation_id)
    question = events.question_text(event, bot.open_id) or event.text
    return Turn(event, heard, context, question, bot, received_ms, reply_to or event.message_id)


def subject_of(event: MessageEvent, bot_open_id: str) -> str:
    """Whose memory is meant: the first mentioned human, else the sender (by open_id)."""
    for mention in event.mentions:
        if mention.open_id and not mention.is_bot and mention.open_id != bot_open_id:
            return mention.open_id
    return event.sender_open_id


async def _open(services: Services, turn: Turn) -> OpenTurn:
    with stage("memory_load"):
        return await services.store.open_turn(
            turn.context,
            turn_id=turn.id,
            content=incoming.kept(turn.event, turn.question),
            actor_name=services.people.name(turn.event.sender_open_id),
            history_limit=services.settings.history_messages,
        )


async def _reply(services: Services, turn: Turn, opened: OpenTurn) -> Reply:
    """A command to the bot is carried out; everything else is for the model."""
    command = parse(turn.question)
    if command and turn.heard.decision.reason is Reason.EXPLICIT_TRIGGER:
        asked = Asked(command, turn.context, turn.chat_type, opened, _language(turn, opened))
        if reply := await answer_command(services, asked):
            return reply
    answer = await _answer(services, turn, opened)
    return reply_of(answer, chat_type=turn.chat_type, language=_language(turn, opened))


def _language(turn: Turn, opened: OpenTurn) -> Language:
    """The language of the question; of a slash command, that of what the person said before."""
    if not turn.question.startswith("/"):
        return language_of([turn.question])
    said = (message.content for message in opened.history if message.role == "user")
    return language_of([turn.question, *said])


async def _answer(services: Services, turn: Turn, opened: OpenTurn) -> Answer:
    """The model's answer, or an honest sentence when there is none in time."""
    if not turn.question.strip():
        return Answer(UNSUPPORTED)
    spent = services.clock() - turn.received_ms / 1000
    left = max(_LEAST_MODEL_TIME_S, _ANSWER_WITHIN_S - spent)
    material = await incoming.gather(services, _source(turn, opened))
    prompt = build_prompt(
        opened,
        turn.question,
        _scene(services, turn),
        context=turn.context,
        turn_id=turn.id,
        transcript=_transcript(turn),
        recalled=await _recalled(services, turn, opened),
        budget_tokens=services.settings.history_token_budget,
        material=material.text,
        images=material.images,
    )
    try:
        with stage("model"):
            answer = await services.manager.answer(
                prompt,
                timeout_s=min(left, services.settings.model_timeout_seconds),
                on_progress=turn.on_progress,
            )
    except ModelUnavailable as exc:
        return _sorry(turn, exc.reason)
    if not answer.text.strip():
        return _sorry(turn, "empty")
    metrics.TOKENS.labels(direction="in").inc(answer.input_tokens)
    metrics.TOKENS.labels(direction="out").inc(answer.output_tokens)
    timing.note(
        tokens_in=answer.input_tokens,
        tokens_out=answer.output_tokens,
        tools=[call["name"] for call in answer.tool_calls],
        specialists=list(answer.specialists),
        cut_short=answer.cut_short,
    )
    return answer


def _source(turn: Turn, opened: OpenTurn) -> incoming.Source:
    seen = {message.message_id for message in opened.history if message.message_id}
    talk = turn.heard.conversation.messages if turn.heard.conversation else ()
    return incoming.Source(turn.event, turn.context, turn.bot, seen, talk)


async def _recalled(services: Services, turn: Turn, opened: OpenTurn) -> str:
    """Earlier messages for a question that needs them: of this thread, and when it speaks of the
    past, of this chat (in p2p, where nobody else reads the answer, of everywhere)."""
    window = [message.content for message in opened.history[:-1]]
    if opened.degraded or not needs_recall(turn.question, window):
        return ""
    of_the_past = needs_recall(turn.question, [turn.question])
    if not of_the_past and len(window) < services.settings.history_messages - 1:
        return ""  # the window is the whole thread
    wide: RecallScope = "chat" if turn.in_group else "everywhere"
    oldest = opened.history[0].id if opened.history else None
    try:
        with stage("recall"):
            found = await services.store.find(
                turn.context,
                turn.question,
                scope=wide if of_the_past else "thread",
                before_id=oldest,
            )
    except StoreError as exc:
        log.warning("recall.unavailable", turn_id=turn.id, error=type(exc).__name__)
        return ""
    return render(found, names=services.people.known)


def _sorry(turn: Turn, reason: str) -> Answer:
    metrics.MODEL_FAILURES.labels(reason=reason).inc()
    log.error("model.unavailable", turn_id=turn.id, reason=reason)
    return Answer(SORRY["zh" if has_chinese(turn.question) else "en"])


def _scene(services: Services, turn: Turn) -> Scene:
    return Scene(
        bot_name=turn.bot.name,
        subject=services.people.name(turn.context.user_id),
        names=services.people.known,
        labelled=turn.in_group,
        now=datetime.now().astimezone(),
    )


def _transcript(turn: Turn) -> str:
    """What was said in this chat (in a thread: in this thread) besides the question.

    Who asks the bot outright is given the talk that the bot did not answer; other people's
    exchanges with the bot stay theirs. A turn that follows a discussion sees all of it.
    """
    if turn.heard.conversation is None:
        return ""
    outright = turn.heard.decision.reason is Reason.EXPLICIT_TRIGGER
    others = (
        message
        for message in turn.heard.conversation.messages
        if message.message_id != turn.id and not (outright and (message.ours or message.answered))
    )
    return transcript(
        others,
        root_id=turn.heard.message.root_id,
        budget_tokens=_TRANSCRIPT_TOKENS,
        estimate=estimate_tokens,
    )


async def _store(services: Services, turn: Turn, answer: Reply) -> tuple[StoredCard, ...]:
    """Composes the exact card texts and stores them as pending, before anything is sent."""
    with stage("memory_save"):
        _, stored = await services.store.record_reply(
            turn.context,
            turn_id=turn.id,
            cards=compose(services, turn, answer.text, auto_mention=answer.auto_mention),
            tool_calls=answer.tool_calls,
            buttons=answer.buttons,
        )
    return stored


def compose(services: Services, turn: Turn, text: str, *, auto_mention: bool = True) -> list[str]:
    """The markdown of each card: addressed to the person who asked, inert, within the limits."""
    sender = services.people.person(turn.event.sender_open_id)
    roster = services.people.roster(_people_of(turn)) if turn.in_group else NOBODY
    spoken = address_reply(
        text,
        sender=sender,
        agent=turn.bot,
        sender_type=turn.event.sender_type,
        roster=roster,
        chat_type=turn.event.chat_type,
        auto_mention=services.settings.auto_mention and auto_mention,
    )
    markdown = to_card(
        spoken,
        roster,
        escape=markup.card_markdown,
        preferred=sender.open_id,
        allow_all=services.settings.allow_mention_all,
    )
    return splitting.split_markdown(markdown)


async def _stream(services: Services, turn: Turn, opened: OpenTurn) -> CardStream | None:
    """The card that shows the answer while it is written; its text is composed like any reply."""
    language = _language(turn, opened)
    people = services.people.roster(_people_of(turn)).names().values()
    names = [*people, turn.bot.name, *ALL_NAMES]

    def render(progress: Progress) -> str:
        return compose(services, turn, showable(progress, names, language))[0]

    opening = Opening(turn.context, turn.id, turn.target)
    return await begin_stream(services, opening, opened, render)


async def _deliver(
    services: Services,
    turn: Turn,
    opened: OpenTurn,
    reply: tuple[StoredCard, ...],
    stream: CardStream | None,
) -> str:
    """Sends what is pending, card by card; what was sent is what is marked sent."""
    if opened.state in _OVER or not reply:
        if stream:
            await stream.withdraw()
        return "duplicate" if opened.state == "sent" else "cancelled"
    for card in reply:
        if card.status != "pending":
            continue
        try:
            sent = await _send(services, turn, card, stream)
        except Undeliverable as exc:
            await services.store.mark_failed(turn.context, turn_id=turn.id, error=exc.reason)
            if stream:
                await stream.closed()
            return "failed"
        with stage("memory_save"):
            await services.store.mark_sent(
                turn.context,
                turn_id=turn.id,
                chunk=card.chunk,
                content=sent.content,
                message_id=sent.message_id,
            )
        if quietens(turn.question):
            continue
        spoken = from_card(sent.content, services.people.known, unescape=markup.unescape)
        await answered(
            services, turn.event, turn.heard, bot=turn.bot, spoken=spoken, sent_id=sent.message_id
        )
    if stream:
        await stream.closed()
    return "sent"


async def _send(
    services: Services, turn: Turn, card: StoredCard, stream: CardStream | None
) -> Delivered:
    """The first card is the one that was streamed, if any; the others are new ones."""
    with stage("send"):
        names, buttons = services.people.known, card_buttons(card.buttons)
        streamed = stream is not None and stream.card is not None and card.chunk == 0
        if stream and streamed:
            shown = await stream.deliver(card.content, buttons=buttons, names=names)
            if shown:
                return shown
        return await deliver(
            services.feishu,
            turn.target,
            turn_id=turn.id,
            chunk=card.chunk,
            content=card.content,
            names=names,
            buttons=buttons,
            version=REPLACING if streamed else 0,
        )


def _people_of(turn: Turn) -> list[str]:
    """open_ids of whom a name in the reply can mean: those who speak and who are mentioned."""
    mentioned = [m.open_id for m in turn.event.mentions]
    talking = list(turn.heard.conversation.participants) if turn.heard.conversation else []
    known = [turn.event.sender_open_id, turn.context.user_id, *mentioned, *talking]
    return [open_id for open_id in dict.fromkeys(known) if open_id and open_id != turn.bot.open_id]


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
        **timing.fields(),
    )
