"""Listens in a group: records messages while a conversation is active, decides whether to answer,
and logs the decision.

Whether the bot speaks is decided in `bot.listening.decisions`; here are the steps around it that
need the store or Feishu: recording, beginning a conversation with what was said before, logging the
decision."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from bot.answering.request_chat import RequestChat
from bot.answering.request_rate import ends_an_answer, judge_of, within_rate
from bot.conversation import ResponseDecider
from bot.feishu import events
from bot.listening.chat_rules import NOTHING_SPENT, BotBudget, rules_of
from bot.listening.conversation_store import (
    NO_TOPICS,
    Circumstances,
    decision_args,
    heard_args,
    tell_conversation_args,
)
from bot.listening.decisions import Decision, IncomingMessage, Reason, decide_start, may_wait
from bot.listening.topics import Discussion, split_by_topic
from bot.listening.transcript import ChannelConversation, HeldTranscript, MessageRecord
from bot.process import metrics
from bot.process.concurrency import cancel_tasks
from bot.queue.consumer import Lease
from memory.errors import StoreError, StoreUnavailable
from memory.tables.timers import ProactiveStore

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class HearingResult:
    """A message, the decision on it, and the group conversation it belongs to, if one is on.

    `discussion` is where in it the message belongs; in a thread there is none.

    What is not `is_stored` is recorded and stored with the opening of the turn. `before` is what
    was said before it, oldest first, where nobody had named the bot lately; None: it was not looked
    up. `may_volunteer`: the chat wants answers to questions that nobody else answers.
    """

    message: IncomingMessage
    decision: Decision
    conversation: ChannelConversation | None = None
    is_stored: bool = True
    discussion: Discussion | None = None
    before: tuple[MessageRecord, ...] | None = None
    may_volunteer: bool = False

    def within(self, conversation: ChannelConversation | None) -> HearingResult:
        """The same, its topic found in that conversation."""
        conversation, discussion = _split_by_topic(self.message, conversation)
        return replace(self, conversation=conversation, discussion=discussion)


async def listen(
    chat: RequestChat,
    *,
    asked_at_s: float | None = None,
    lease: Lease | None = None,
) -> HearingResult:
    """Decides, and records what is not answered. Every decision is one log line and one count.
    `asked_at_s` (s since epoch): the message counts as a request of its sender. The job of `lease`
    ends with the decision where the bot keeps silent, if both are stored in one place.

    Who is asked outright by a person needs to know nothing for that: such a message is recorded,
    and the decision stored, by the opening of its turn.
    """
    message = await _incoming(chat)
    question = events.question_text(chat.request, chat.bot.open_id) or chat.request.text
    if _asked_outright(chat, message):
        decision = decide_start(message, chat.bot.open_id)
        decision = await within_rate(chat, message, question, decision, asked_at_s)
        if not decision.respond:
            await _store_skipped(chat, message, decision)
        hearing = HearingResult(message, decision, is_stored=not decision.respond)
    elif await ends_an_answer(chat, message):
        hearing = HearingResult(message, Decision(True, Reason.STOP, "explicit"), is_stored=False)
    else:
        hearing = await _overhear(chat, message, question, asked_at_s, lease)
    _log_decision(chat, hearing)
    if hearing.may_volunteer:
        await _wait_for_others(chat, hearing)
    return hearing


async def _overhear(
    chat: RequestChat,
    message: IncomingMessage,
    question: str,
    asked_at_s: float | None,
    lease: Lease | None,
) -> HearingResult:
    """Records a message that is not plainly for the bot, and decides by the talk it stands in."""
    ends = lease if chat.services.store.joins else None
    around = await _hear(chat, message, ends)
    if around.decided:
        return HearingResult(message, around.decided)
    rules = around.rules
    conversation = await _in_own_thread(chat, message, around.conversation, rules.told_since_ms)
    judge = judge_of(chat, asked_at_s)
    window_s = chat.services.settings.followup_window_seconds
    decider = ResponseDecider(chat.bot.open_id, window_s, judge)
    budget = await _bot_budget(chat, message)
    conversation, discussion = _split_by_topic(message, conversation)
    decision = await decider.decide(message, conversation, budget, rules.mode)
    decision = await within_rate(chat, message, question, decision, asked_at_s)
    topics = discussion.new_topics if discussion else NO_TOPICS
    may_volunteer = rules.choice("proactive") == "on"
    if may_volunteer:
        ends = None  # there is more to do
    decision = await _store_decision(chat, message, decision, topics, ends)
    return HearingResult(
        message, decision, conversation, discussion=discussion, may_volunteer=may_volunteer
    )


def _split_by_topic(
    message: IncomingMessage, conversation: ChannelConversation | None
) -> tuple[ChannelConversation | None, Discussion | None]:
    """The conversation with its topics, and where in it the message belongs."""
    if conversation is None or message.root_id is not None:
        return conversation, None
    record = message.record()
    discussion = split_by_topic(conversation.messages, record, asks_bot=message.is_explicit)
    return replace(conversation, messages=discussion.messages), discussion


async def _in_own_thread(
    chat: RequestChat,
    message: IncomingMessage,
    conversation: ChannelConversation | None,
    told_since_ms: int,
) -> ChannelConversation | None:
    """What was said in a thread in which the bot has answered, however long ago: there listening
    does not lapse. Elsewhere, and where the conversation knows it, the conversation as it is."""
    root = message.root_id
    if root is None or not chat.is_followed or message.author_id == chat.bot.open_id:
        return conversation
    if conversation and any(record.ours and record.is_in(root) for record in conversation.messages):
        return conversation
    store = chat.conversations
    try:
        if not await store.has_answered_in(root):
            return conversation
        quiet = bool(conversation and conversation.quiet) or await store.is_quiet()
    except StoreUnavailable:
        return conversation
    recent = await chat.recent_messages()
    visible_records = [one for one in recent if one.timestamp >= told_since_ms]
    records = (*visible_records, message.record())
    return ChannelConversation(
        chat.request.chat_id,
        records[0].timestamp,
        message.timestamp,
        records,
        quiet,
        is_listed=True,
    )


def opening_args(
    chat: RequestChat, hearing: HearingResult, transcript: HeldTranscript
) -> dict[str, Mapping[str, object]]:
    """What `MemoryStore.begin_turn` has to record and store of a message, by a worker that has so
    much of the transcript."""
    if hearing.is_stored or chat.request.chat_type == "p2p":
        return {}
    args: dict[str, Mapping[str, object]] = {
        "decision": decision_args(hearing.message, hearing.decision)
    }
    if chat.is_followed:
        record = hearing.message.record()
        args["hearing_args"] = heard_args(record, chat.timeout_ms, transcript, hearing.before or ())
    return args


async def with_earlier_talk(chat: RequestChat, hearing: HearingResult) -> HearingResult:
    """Adds what people said before the message, unless this worker knows of a conversation in the
    chat. Without a conversation nothing was stored, and the question may be about the last line."""
    if hearing.is_stored or not chat.is_followed:
        return hearing
    request, transcripts = chat.request, chat.services.transcripts
    now_ms = hearing.message.timestamp
    since_ms = now_ms - chat.timeout_ms
    if transcripts.of(request.tenant_key, request.chat_id).is_on(since_ms):
        return hearing
    before = await transcripts.earlier.within(
        since_ms,
        now_ms,
        (request.tenant_key, request.chat_id, request.thread_id),
        chat.recent_messages,
    )
    return replace(hearing, before=before)


def conversation_reply_args(
    chat: RequestChat,
    hearing: HearingResult,
    before: Sequence[MessageRecord],
    record: MessageRecord,
) -> dict[str, object] | None:
    """What the conversation of the chat is told of a delivered reply (`record`): it goes on with
    it, or begins with it after what was said `before`. None where conversations are not followed.
    """
    if not chat.is_followed:
        return None
    discussion = hearing.discussion or Discussion(tuple(before))
    topics = {**discussion.new_topics, **split_by_topic(discussion.messages, record).new_topics}
    return tell_conversation_args((*before, record), record.timestamp, chat.timeout_ms, topics)


@contextlib.asynccontextmanager
async def talk_before_answer(
    chat: RequestChat, hearing: HearingResult
) -> AsyncIterator[Callable[[], Awaitable[tuple[MessageRecord, ...]]]]:
    """What was said before an answer that begins a conversation, looked up while it is sent unless
    it was before."""
    if hearing.conversation or not chat.is_followed:
        yield _nothing
        return

    async def earlier() -> tuple[MessageRecord, ...]:
        return await chat.recent_messages() if hearing.before is None else hearing.before

    looking = asyncio.create_task(earlier())

    async def before() -> tuple[MessageRecord, ...]:
        return (*await looking, hearing.message.record())

    try:
        yield before
    finally:
        await cancel_tasks([looking])


async def _nothing() -> tuple[MessageRecord, ...]:
    return ()


async def _incoming(chat: RequestChat) -> IncomingMessage:
    services, request, bot = chat.services, chat.request, chat.bot
    to_bot = request.is_for(bot.open_id)
    quotes = bool(request.quotes) and not to_bot
    quoted_bot = quotes and await chat.is_own_message(request.quotes)
    return IncomingMessage(
        message_id=request.message_id,
        author=services.people.of(request.tenant_key).name(request.sender_open_id),
        author_id=request.sender_open_id,
        text=request.text,
        timestamp=request.create_time_ms or int(services.clock() * 1000),
        is_bot=request.sender_type != "user",
        chat_type=request.chat_type,
        mentions_bot=to_bot,
        mentions_bots=any(m.is_bot and m.open_id != bot.open_id for m in request.mentions),
        mentions_others=request.mentions_all
        or any(m.open_id != bot.open_id for m in request.mentions),
        replies_to_bot=quoted_bot,
        replies_to_other=quotes and not quoted_bot,
        is_press=request.written is None,
        is_resumed=request.resumed,
        quotes=request.quotes,
        root_id=request.root_of_thread or None,
    )


async def _hear(chat: RequestChat, message: IncomingMessage, ends: Lease | None) -> Circumstances:
    """Keeps what is said while a conversation is on (the bot's own words are kept when sent), and
    reads what decides on it. Without memory the bot keeps to explicit triggers."""
    settings, bot = chat.services.settings, chat.bot
    records = chat.is_followed and message.author_id != bot.open_id
    likely = decide_start(message, bot.open_id, mode=rules_of(None, settings).mode)
    silent = not likely.respond and chat.request.chat_type != "p2p"
    try:
        around, result = await chat.conversations.hear(
            message,
            settings,
            timeout_ms=chat.timeout_ms if records else None,
            likely=likely if silent else None,
            then=ends.ending_if_silent(message.message_id) if ends and silent else None,
        )
    except StoreUnavailable:
        return Circumstances(rules_of(None, settings))
    if ends and around.decided and not around.decided.respond:
        ends.note_end(result)
    return around


async def _bot_budget(chat: RequestChat, message: IncomingMessage) -> BotBudget | None:
    """What another bot that mentions this one is answered from. None without memory: unable to
    count, the bot rather keeps silent than talks forever."""
    if not (message.is_bot and message.mentions_bot):
        return NOTHING_SPENT
    try:
        return await chat.conversations.bot_budget(message)
    except StoreUnavailable:
        return None


async def _store_decision(
    chat: RequestChat,
    message: IncomingMessage,
    decision: Decision,
    topics: Mapping[str, int],
    ends: Lease | None,
) -> Decision:
    """The decision that holds. The job of `ends` is over with it where the bot keeps silent."""
    if chat.request.chat_type == "p2p":
        return decision
    then = ends.ending_if_silent(message.message_id) if ends else None
    with contextlib.suppress(StoreUnavailable):
        decision, result = await chat.conversations.log_decision_and(
            message, decision, topics, then
        )
        if ends and not decision.respond:
            ends.note_end(result)
    return decision


async def _store_skipped(chat: RequestChat, message: IncomingMessage, decision: Decision) -> None:
    """In p2p too, where nothing else is decided: `/why` tells it."""
    with contextlib.suppress(StoreUnavailable):
        await chat.conversations.log_decision(message, decision)


def _asked_outright(chat: RequestChat, message: IncomingMessage) -> bool:
    """By a person, beyond doubt, and with words (a picture alone is answered in p2p only)."""
    by_person = not message.is_bot and message.author_id != chat.bot.open_id
    readable = chat.request.chat_type == "p2p" or bool(message.text.strip())
    return message.is_explicit and by_person and readable


def _log_decision(chat: RequestChat, hearing: HearingResult) -> None:
    decision = hearing.decision
    metrics.DECISIONS.labels(respond=decision.respond, reason=decision.reason.value).inc()
    log.info(
        "decision",
        message_id=hearing.message.message_id,
        chat_id=chat.request.chat_id,
        respond=decision.respond,
        reason=decision.reason.value,
        tier=decision.tier,
        since_bot_ms=decision.since_bot_ms,
        judge_ms=decision.judge_ms,
    )


async def _wait_for_others(chat: RequestChat, hearing: HearingResult) -> None:
    """Notes when to look at it again. A question that cannot be noted is not answered."""
    settings, request, message = chat.services.settings, chat.request, hearing.message
    is_text = request.message_type == "text"
    if not settings.proactive or not is_text or not may_wait(message, hearing.decision):
        return
    context = replace(chat.sender_context, chat_type="group")
    due_ms = message.timestamp + settings.proactive_after_minutes * 60_000
    try:
        await ProactiveStore(chat.services.rpc).wait(
            context, request.message_id, message.text, message.timestamp, due_ms
        )
    except StoreError as exc:
        log.warning("proactive.not_noted", error=type(exc).__name__, code=exc.code)
