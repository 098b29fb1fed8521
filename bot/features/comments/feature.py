"""Answers a comment that mentions the bot, in the comment's thread.

The readers of the document read the answer, so it is made only of the document, the thread and
what was kept in this thread. The thread is a place of its own in the memory, which the database
enforces too (`agent_chats_place`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import structlog

from bot.agents.manager import AgentAnswer, ModelUnavailable
from bot.agents.prompts.tool_context import with_shown
from bot.agents.running_turns import note_sources, noting_sources
from bot.answering.prompt_history import PromptMaterial, Scene, build_prompt
from bot.answering.request_chat import chat_of
from bot.answering.request_rate import rate_notice, within_rate
from bot.answering.texts import apology
from bot.answering.texts import say as say_of_answers
from bot.conversation import ResponseDecider
from bot.features.comments.reading import (
    ThreadNotRead,
    document_of,
    lines_of,
    material_of,
    thread_of,
)
from bot.features.feature import Feature
from bot.feishu.events import COMMENT_ADDED, Envelope
from bot.feishu.other_events import (
    CommentNotice,
    CommentReply,
    CommentThread,
    comment_message_key,
    mentioned_in,
    parse_comment,
    replies_of,
    reply_text,
)
from bot.listening.chat_rules import NOTHING_SPENT, BotBudget
from bot.listening.conversation_store import ChatConversations, decision_args
from bot.listening.decisions import Decision, IncomingMessage, Reason
from bot.listening.turn_request import TurnRequest, WrittenQuestion
from bot.outbox.delivery import InComment
from bot.outbox.sending import After, Outgoing, send
from bot.process import metrics
from bot.process.concurrency import room_to_begin, room_to_go_on
from bot.process.metrics import timed_stage
from bot.process.usage import TurnRecord
from bot.queue.consumer import Lease
from bot.queue.jobs import Later
from bot.services import Services
from bot.text.languages import Catalogue, Language, last_own_language
from bot.text.roster import Person
from memory.errors import StoreUnavailable
from memory.models import (
    ENDED_STATES,
    MESSAGE_ORIGIN,
    OpenTurn,
    StoredCard,
    TurnOutcome,
    WorkingMemory,
    apology_outcome,
    refusal_outcome,
)
from memory.scope import MAIN_ROOT, AgentMemoryContext, FeishuPerson, document_chat, memory_context

log = structlog.get_logger()
TOOLS = frozenset({"read_working_memory", "update_working_memory", "forget_fact", "read_document"})
_OWNER = (
    "This question stands in a comment of a Feishu document, and everybody who can open that reads"
    " your answer. Answer in a few sentences of plain text without Markdown. Use the document"
    " and the comments; of people, chats and other documents you know nothing here."
)

say = Catalogue(__file__).say


@dataclass(frozen=True, slots=True)
class CommentQuestion:
    """A comment to be answered: its thread, and where in it and by whom it was said."""

    notice: CommentNotice
    thread: CommentThread
    asking_reply: CommentReply
    question: str
    context: AgentMemoryContext
    bot: Person
    names: Mapping[str, str]
    author: str
    received_ms: int

    @property
    def id(self) -> str:
        """The turn's, and the comment's where messages have theirs."""
        return comment_message_key(self.notice.place.file_type, self.notice.reply_id)

    @property
    def language(self) -> Language:
        """The question's, else that of the thread."""
        replies = [reply_text(one, self.names) for one in self.thread.replies]
        return last_own_language([*replies, self.question]) or "en"


async def handle_comment(
    services: Services, notice: CommentNotice, received_ms: int, lease: Lease
) -> None:
    """Answers one comment, or keeps silent. Raises the errors that are worth another attempt."""
    metrics.begin_turn_timing()
    bot = await services.own_person.look_up()
    if not _may_concern(notice, bot):
        log.info("comment.ignored", comment_id=notice.place.comment_id)
        return
    context = _context(notice)
    structlog.contextvars.bind_contextvars(conversation_id=context.conversation_id)
    asker = FeishuPerson(notice.tenant_key, notice.author_open_id)
    if lease.job.attempt == 1 and services.rates.knows_refusal(asker, received_ms / 1000):
        log.info("comment.rate_limited", comment_id=notice.place.comment_id)
        return
    async with services.shares.hold(asker):
        await room_to_begin()
        await _take(services, notice, context, bot, received_ms, lease)


async def _take(
    services: Services,
    notice: CommentNotice,
    context: AgentMemoryContext,
    bot: Person,
    received_ms: int,
    lease: Lease,
) -> None:
    """Reads the comment, decides and answers."""
    try:
        thread = await thread_of(services, notice)
        comment = await _comment(services, notice, thread, context, bot, received_ms)
    except ThreadNotRead as exc:
        metrics.TURNS.labels(outcome="undelivered").inc()
        log.warning("comment.given_up", reason=exc.reason, attempt=lease.job.attempt)
        return
    if bot.open_id not in mentioned_in(comment.asking_reply):
        log.info("comment.for_others", comment_id=notice.place.comment_id)
        return
    message = _incoming(comment)
    decision = await _decide(services, comment, message, first=lease.job.attempt == 1)
    metrics.DECISIONS.labels(respond=decision.respond, reason=decision.reason.value).inc()
    log.info("decision", message_id=comment.id, respond=decision.respond, reason=decision.reason)
    if decision.respond:
        with metrics.IN_FLIGHT.track_inprogress():
            await _answer(services, comment, message, decision, lease)


def _may_concern(notice: CommentNotice, bot: Person) -> bool:
    """True if somebody else mentions anybody. Feishu sets `is_mentioned` for any mention, so only
    the comment itself says whether the bot is among the mentioned."""
    return notice.is_mentioned and notice.author_open_id not in ("", bot.open_id)


def _context(notice: CommentNotice) -> AgentMemoryContext:
    place, author = notice.place, notice.author_open_id
    return memory_context(
        chat_id=document_chat(place.file_token, place.comment_id),
        root=MAIN_ROOT,
        subject=author,
        actor=author,
        tenant_key=notice.tenant_key,
        chat_type="group",
    )


async def _comment(
    services: Services,
    notice: CommentNotice,
    thread: CommentThread,
    context: AgentMemoryContext,
    bot: Person,
    received_ms: int,
) -> CommentQuestion:
    """Raises `ThreadNotRead` where the comment was deleted meanwhile."""
    asking_reply = thread.reply(notice.reply_id)
    if asking_reply is None:
        raise ThreadNotRead("deleted")
    names = services.people.of(notice.tenant_key)
    said_by = {one.author_open_id for one in thread.replies}
    met_ids = {*said_by, *(id for one in thread.replies for id in mentioned_in(one))}
    await names.look_up(sorted(met_ids - {bot.open_id}))
    names_by_id = {**names.known, bot.open_id: bot.name}
    return CommentQuestion(
        notice,
        thread,
        asking_reply,
        reply_text(asking_reply, names_by_id, without=bot.open_id),
        context,
        bot,
        names_by_id,
        names.name(notice.author_open_id),
        received_ms,
    )


def _incoming(comment: CommentQuestion) -> IncomingMessage:
    notice = comment.notice
    return IncomingMessage(
        message_id=comment.id,
        author=comment.author,
        author_id=notice.author_open_id,
        text=comment.question,
        timestamp=notice.create_time_ms or comment.received_ms,
        is_bot=notice.by_bot,
        mentions_bot=True,
        root_id=notice.place.comment_id,
    )


async def _decide(
    services: Services, comment: CommentQuestion, message: IncomingMessage, *, first: bool
) -> Decision:
    """A person is answered within their rate, another bot within its budget."""
    store = ChatConversations(services.rpc, comment.context)
    budget: BotBudget | None = NOTHING_SPENT
    if message.is_bot:
        try:
            budget = await store.bot_budget(message)
        except StoreUnavailable:
            budget = None  # unable to count, the bot rather keeps silent than talks forever
    decision = await ResponseDecider(comment.bot.open_id).decide(message, None, budget)
    asked_at_s = comment.received_ms / 1000 if first else None
    chat = chat_of(services, _request(comment), comment.bot)
    decision = await within_rate(chat, message, comment.question, decision, asked_at_s)
    if not decision.respond:
        try:
            await store.log_decision(message, decision)
        except StoreUnavailable as exc:
            log.warning("comment.decision_not_stored", error=type(exc).__name__)
    return decision


def _request(comment: CommentQuestion) -> TurnRequest:
    notice, context = comment.notice, comment.context
    return TurnRequest(
        id=comment.id,
        origin=MESSAGE_ORIGIN,
        sender_open_id=notice.author_open_id,
        tenant_key=notice.tenant_key,
        chat_id=context.chat_id,
        chat_type="group",
        text=comment.question,
        create_time_ms=notice.create_time_ms,
        sender_type="bot" if notice.by_bot else "user",
        written=WrittenQuestion(comment.id, "text", ""),
    )


async def _answer(
    services: Services,
    comment: CommentQuestion,
    message: IncomingMessage,
    decision: Decision,
    lease: Lease,
) -> None:
    """Opens the turn, makes the answer, stores it and says it."""
    open_turn = await services.store.begin_turn(
        comment.context,
        turn_id=comment.id,
        content=comment.question,
        actor_name=comment.author,
        history_limit=services.settings.history_messages,
        decision=decision_args(message, decision),
    )
    if open_turn.state in ENDED_STATES:
        log.info("turn", turn_id=comment.id, outcome="duplicate", attempt=open_turn.attempts)
        return
    reply, means = open_turn.reply, open_turn.means
    if open_turn.state == "open":
        reply, means = await _store_answer(services, comment, open_turn, decision)
    out = Outgoing(
        comment.context,
        comment.id,
        reply,
        InComment(comment.notice.place, comment.notice.reply_id),
        comment.names,
        since_ms=lease.job.maybe_sent_ms,
    )
    delivery = await send(services, out, lease=lease, after=After(lease, lambda: None))
    _report(services, comment, open_turn.attempts, delivery.ended(means))


async def _store_answer(
    services: Services, comment: CommentQuestion, open_turn: OpenTurn, decision: Decision
) -> tuple[tuple[StoredCard, ...], TurnOutcome]:
    """Makes the answer and stores it. Raises `Later` if a source of it was taken back meanwhile."""
    answer, source_ids = await _make_answer(services, comment, open_turn, decision)
    await room_to_go_on()
    with timed_stage("memory_save"):
        state, reply = await services.store.record_reply(
            comment.context,
            turn_id=comment.id,
            cards=_replies(comment, answer, decision),
            tool_calls=with_shown(answer.tool_calls, answer.text),
            source_ids=source_ids,
            means=answer.means,
        )
    if state == "open":
        await services.store.undo_kept(comment.context, comment.id)
        raise Later("what the answer was made with was taken back")
    return reply, answer.means


def _report(
    services: Services, comment: CommentQuestion, attempts: int, outcome: TurnOutcome | None
) -> None:
    """Logs and counts the turn. `outcome` None: an earlier attempt had ended it."""
    kind = outcome.kind if outcome else "duplicate"
    reason = outcome.reason if outcome else ""
    seconds = round(services.clock() - comment.received_ms / 1000, 3)
    metrics.TURNS.labels(outcome=kind).inc()
    log.info(
        "turn", turn_id=comment.id, outcome=kind, reason=reason, attempt=attempts,
        seconds=seconds, **metrics.turn_log_fields(),
    )  # fmt: skip
    took = {"outcome": kind, "attempt": attempts, "seconds": seconds}
    record = {**took, **metrics.turn_log_fields(), **metrics.kept_for_record()}
    services.records.add(TurnRecord(comment.id, services.now(), record))


async def _make_answer(
    services: Services, comment: CommentQuestion, open_turn: OpenTurn, decision: Decision
) -> tuple[AgentAnswer, tuple[str, ...]]:
    """The answer, and the ids of what it was made with beside the question."""
    if decision.reason is Reason.RATE_LIMITED:
        refusal = rate_notice(services, comment.language)
        return AgentAnswer(refusal, means=refusal_outcome("rate_limited")), ()
    if not comment.question.strip():
        return AgentAnswer(
            say("no-question", comment.language), means=refusal_outcome("unreadable")
        ), ()
    document = document_of(services, comment.notice)
    with noting_sources() as sources:
        note_sources(one.message_id for one in open_turn.told)
        note_sources(open_turn.working_memory.turns)
        prompt = build_prompt(
            _of_this_thread(open_turn),
            comment.question,
            _scene(services, comment),
            context=comment.context,
            turn_id=comment.id,
            transcript="\n".join(
                lines_of(comment.thread, comment.asking_reply, comment.names, comment.bot.open_id)
            ),
            budget_tokens=services.settings.history_token_budget,
            calibration=services.meter.calibration,
            material=PromptMaterial(
                await material_of(document, comment.notice.place, comment.thread)
            ),
        )
        try:
            with timed_stage("model"):
                answer = await services.manager.answer(
                    prompt,
                    timeout_s=services.settings.model_timeout_seconds,
                    opened_tools={"documents": document},
                    allowed_tools=TOOLS,
                )
        except ModelUnavailable as exc:
            answer = _sorry(comment, exc.reason)
    if not answer.text.strip():
        answer = _sorry(comment, "empty")
    metrics.count_tokens("answer", answer.input_tokens, answer.output_tokens)
    return answer, tuple(sorted(sources - {comment.id}))


def _of_this_thread(open_turn: OpenTurn) -> OpenTurn:
    """What the turn was opened with, without what is of the person and not of the thread, and
    without the exchanges that the thread itself shows."""
    working_memory = open_turn.working_memory
    return replace(
        open_turn,
        history=open_turn.history[-1:],
        registry=(),
        summary=None,
        working_memory=WorkingMemory(
            working_memory.chat, {}, working_memory.said, working_memory.turns
        ),
    )


def _scene(services: Services, comment: CommentQuestion) -> Scene:
    owner = f"{services.settings.bot_instructions}\n\n{_OWNER}".strip()
    return Scene(
        bot_name=comment.bot.name,
        subject=comment.author,
        names=comment.names,
        labelled=True,
        now=services.now(),
        asked=services.asked_at(comment.notice.create_time_ms),
        owner=owner,
        language=comment.language,
    )


def _replies(comment: CommentQuestion, answer: AgentAnswer, decision: Decision) -> list[str]:
    """The exact texts: addressed to who asked, in parts where it is long."""
    language, text = comment.language, answer.text
    if answer.pending_actions:
        text = f"{text}\n\n{say('no-buttons', language)}"
    if decision.reason is Reason.BOT_LAST_ANSWER:
        text = f"{text}\n\n{say_of_answers('last-to-bots', language)}"
    note = say("shortened", language)
    return replies_of(text, comment.notice.author_open_id, note=note)


def _sorry(comment: CommentQuestion, reason: str) -> AgentAnswer:
    metrics.MODEL_FAILURES.labels(reason=reason).inc()
    log.error("model.unavailable", turn_id=comment.id, reason=reason)
    return AgentAnswer(apology(reason, comment.language), means=apology_outcome(reason))


async def handle_comment_event(
    services: Services, envelope: Envelope, received_ms: int, lease: Lease
) -> None:
    """Answers one comment. Raises MalformedEvent, and as `handle_comment`."""
    await handle_comment(services, parse_comment(envelope), received_ms, lease)


COMMENTS = Feature(name="comments", events={COMMENT_ADDED: handle_comment_event})
