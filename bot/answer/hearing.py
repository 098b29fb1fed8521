"""Listening in a group: what is heard is kept while a conversation is on, and decided upon.

Whether the bot speaks is decided in `bot.group.decisions`; here are the steps around it that need
the store or Feishu: recording, seeding a conversation with recent messages, logging the decision.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from bot.answer.stopping import ends_an_answer
from bot.conversation import ConversationManager, ResponseDecider
from bot.ending import ended
from bot.feishu import events
from bot.feishu.errors import FeishuError, FeishuFailure
from bot.feishu.events import MessageEvent
from bot.feishu.models import RawMessage
from bot.feishu.received import raw_text
from bot.group.decisions import Decision, IncomingMessage, Reason, decide_start
from bot.group.rules import ChatRules
from bot.group.store import NO_TOPICS, ChatConversations, decision_args, heard_args, told_args
from bot.group.topics import Discussion, tell_apart
from bot.group.transcript import ChannelConversation, MessageRecord
from bot.mentions import Person
from bot.people.names import Names
from bot.services import Services
from bot.telemetry import metrics
from memory.errors import StoreUnavailable
from memory.scope import memory_context

log = structlog.get_logger()

_RECENT = 20
_RECENT_S = 3600
_LOOK_BACK_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class Heard:
    """A message, the decision on it, and the group conversation it belongs to, if one is on.

    `discussion` is where in it the message belongs; in a thread there is none.

    What is not `kept` is still to be recorded and stored, with the opening of the turn.
    """

    message: IncomingMessage
    decision: Decision
    conversation: ChannelConversation | None = None
    kept: bool = True
    discussion: Discussion | None = None

    def within(self, conversation: ChannelConversation | None) -> Heard:
        """The same, its topic found in that conversation."""
        conversation, discussion = _told_apart(self.message, conversation)
        return replace(self, conversation=conversation, discussion=discussion)


async def listen(services: Services, event: MessageEvent, bot: Person) -> Heard:
    """Decides, and records what is not answered. Every decision is one log line and one count.

    Who is asked outright by a person needs to know nothing for that: such a message is recorded,
    and the decision stored, by the opening of its turn.
    """
    message = await _incoming(services, event, bot)
    if _asked_outright(event, message, bot):
        decision = decide_start(message, (), bot.open_id)
        _say(event, message, decision)
        return Heard(message, decision, kept=False)
    if await ends_an_answer(services, event, message):
        decision = Decision(True, Reason.STOP, "explicit")
        _say(event, message, decision)
        return Heard(message, decision, kept=False)
    conversation, rules = await asyncio.gather(
        _record(services, event, message, bot), chat_rules(services, _store(services, event))
    )
    conversation = await _in_own_thread(services, event, message, bot, conversation)
    decider = ResponseDecider(
        bot.open_id, services.settings.followup_window_seconds, services.judge
    )
    recent = conversation.messages if conversation else await _loop_memory(services, event, message)
    conversation, discussion = _told_apart(message, conversation)
    decision = await decider.decide(message, conversation, recent, rules.mode)
    topics = discussion.found if discussion else NO_TOPICS
    decision = await _store_decision(services, event, message, decision, topics)
    _say(event, message, decision)
    if rules.proactive:
        from bot.answer.waiting import wait_for_others  # for chats that want it

        await wait_for_others(services, event, message, decision)
    return Heard(message, decision, conversation, discussion=discussion)


def _told_apart(
    message: IncomingMessage, conversation: ChannelConversation | None
) -> tuple[ChannelConversation | None, Discussion | None]:
    """The conversation with its topics, and where in it the message belongs."""
    if conversation is None or message.root_id is not None:
        return conversation, None
    asked = message.record()
    discussion = tell_apart(conversation.messages, asked, asks_bot=message.is_explicit)
    return replace(conversation, messages=discussion.messages), discussion


async def chat_rules(services: Services, store: ChatConversations) -> ChatRules:
    """The rules of the chat; without memory those of the environment."""
    settings = services.settings
    usual = ChatRules(settings.chat_mode, settings.chat_language)
    try:
        return await store.rules(usual)
    except StoreUnavailable:
        return usual


async def _in_own_thread(
    services: Services,
    event: MessageEvent,
    message: IncomingMessage,
    bot: Person,
    known: ChannelConversation | None,
) -> ChannelConversation | None:
    """What was said in a thread in which the bot has answered, however long ago: there listening
    does not lapse. Elsewhere, and where the conversation knows it, the conversation as it is."""
    root = message.root_id
    if root is None or not _follows(services, event) or message.author_id == bot.open_id:
        return known
    if known and any(record.ours and record.is_in(root) for record in known.messages):
        return known
    store = _store(services, event)
    try:
        if not await store.has_answered_in(root):
            return known
        quiet = bool(known and known.quiet) or await store.is_quiet()
    except StoreUnavailable:
        return known
    said = (*await recent_messages(services, event, bot), message.record())
    return ChannelConversation(event.chat_id, said[0].timestamp, message.timestamp, said, quiet)


def opening_args(
    services: Services, event: MessageEvent, heard: Heard
) -> dict[str, Mapping[str, object]]:
    """What `MemoryStore.begin_turn` has to record and store of a message."""
    if heard.kept or event.chat_type == "p2p":
        return {}
    args: dict[str, Mapping[str, object]] = {
        "decision": decision_args(heard.message, heard.decision)
    }
    if _follows(services, event):
        args["heard"] = heard_args(heard.message.record(), _timeout_ms(services))
    return args


def told_args_of(
    services: Services,
    event: MessageEvent,
    heard: Heard,
    before: Sequence[MessageRecord],
    record: MessageRecord,
) -> dict[str, object] | None:
    """What the conversation of the chat is told of a delivered reply (`record`): it goes on with
    it, or begins with it after what was said `before`. None where conversations are not followed.
    """
    if not _follows(services, event):
        return None
    known = heard.discussion or Discussion(tuple(before))
    topics = {**known.found, **tell_apart(known.messages, record).found}
    return told_args((*before, record), record.timestamp, _timeout_ms(services), topics)


@contextlib.asynccontextmanager
async def before_answer(
    services: Services, event: MessageEvent, heard: Heard, bot: Person
) -> AsyncIterator[Callable[[], Awaitable[tuple[MessageRecord, ...]]]]:
    """What was said before an answer that begins a conversation, looked up while it is sent."""
    if heard.conversation or not _follows(services, event):
        yield _nothing
        return
    looking = asyncio.create_task(recent_messages(services, event, bot))

    async def before() -> tuple[MessageRecord, ...]:
        return (*await looking, heard.message.record())

    try:
        yield before
    finally:
        await ended([looking])


async def _nothing() -> tuple[MessageRecord, ...]:
    return ()


async def recent_messages(
    services: Services, event: MessageEvent, bot: Person
) -> tuple[MessageRecord, ...]:
    """What was said in the chat lately, from Feishu's list where the scope allows, oldest first."""
    if services.denials.stands("list_messages"):
        return ()
    in_thread = bool(event.thread_id)
    now = int(services.clock())
    try:
        async with asyncio.timeout(_LOOK_BACK_TIMEOUT_S):
            found = await services.feishu.list_messages(
                "thread" if in_thread else "chat",
                event.thread_id if in_thread else event.chat_id,
                start_s=None if in_thread else now - _RECENT_S,
                end_s=None if in_thread else now,
                descending=True,
                page_size=_RECENT,
                max_items=_RECENT,
            )
    except (TimeoutError, FeishuFailure) as exc:
        if isinstance(exc, FeishuError):
            services.denials.note("list_messages")
        log.info("recent_messages.unavailable", error=type(exc).__name__)
        return ()
    names = services.people.of(event.tenant_key)
    app_id = services.settings.feishu_app_id
    here = [one for one in found if not one.deleted and one.chat_id in ("", event.chat_id)]
    records = [record_of_list(names, app_id, raw, bot) for raw in reversed(here)]
    return tuple(r for r in records if r.content and r.message_id != event.message_id)


async def _incoming(services: Services, event: MessageEvent, bot: Person) -> IncomingMessage:
    to_bot = events.mentions_bot(event, bot.open_id)
    quotes = bool(event.parent_id) and not event.thread_id and not to_bot
    quoted_bot = quotes and await _is_ours(services, event.parent_id)
    return IncomingMessage(
        message_id=event.message_id,
        author=services.people.of(event.tenant_key).name(event.sender_open_id),
        author_id=event.sender_open_id,
        text=event.text,
        timestamp=event.create_time_ms or int(services.clock() * 1000),
        is_bot=event.sender_type != "user",
        chat_type=event.chat_type,
        mentions_bot=to_bot,
        mentions_others=event.mentions_all or any(m.open_id != bot.open_id for m in event.mentions),
        replies_to_bot=quoted_bot,
        replies_to_other=quotes and not quoted_bot,
        quotes="" if event.thread_id else event.parent_id,
        root_id=event.root_id if event.thread_id else None,
    )


async def _is_ours(services: Services, message_id: str) -> bool:
    """Whether this bot sent a message; when Feishu does not say, it did not."""
    try:
        async with asyncio.timeout(_LOOK_BACK_TIMEOUT_S):
            found = await services.feishu.get_message(message_id)
    except (TimeoutError, FeishuFailure):
        return False
    return bool(found) and found[0].sender_id == services.settings.feishu_app_id


async def _record(
    services: Services, event: MessageEvent, message: IncomingMessage, bot: Person
) -> ChannelConversation | None:
    """Keeps what is said while a conversation is on; the bot's own words are kept when sent."""
    if not _follows(services, event) or message.author_id == bot.open_id:
        return None
    try:
        return await _conversations(services, event).record_message(event.chat_id, message.record())
    except StoreUnavailable:
        return None  # without memory the bot keeps to explicit triggers


async def _loop_memory(
    services: Services, event: MessageEvent, message: IncomingMessage
) -> tuple[MessageRecord, ...]:
    """What the loop guard looks at between conversations; only other bots need it."""
    if not message.is_bot or not _follows(services, event):
        return ()
    try:
        last = await _store(services, event).load(event.chat_id)
    except StoreUnavailable:
        return ()
    return last.messages if last else ()


async def _store_decision(
    services: Services,
    event: MessageEvent,
    message: IncomingMessage,
    decision: Decision,
    topics: Mapping[str, int],
) -> Decision:
    if event.chat_type != "p2p":
        with contextlib.suppress(StoreUnavailable):
            return await _store(services, event).log_decision(message, decision, topics)
    return decision


def _asked_outright(event: MessageEvent, message: IncomingMessage, bot: Person) -> bool:
    """By a person, beyond doubt, and with words (a picture alone is answered in p2p only)."""
    by_person = not message.is_bot and message.author_id != bot.open_id
    readable = event.chat_type == "p2p" or bool(event.text.strip())
    return message.is_explicit and by_person and readable


def _say(event: MessageEvent, message: IncomingMessage, decision: Decision) -> None:
    metrics.DECISIONS.labels(respond=decision.respond, reason=decision.reason.value).inc()
    log.info(
        "decision",
        message_id=message.message_id,
        chat_id=event.chat_id,
        respond=decision.respond,
        reason=decision.reason.value,
        tier=decision.tier,
        since_bot_ms=decision.since_bot_ms,
        judge_ms=decision.judge_ms,
    )


def _follows(services: Services, event: MessageEvent) -> bool:
    return event.chat_type != "p2p" and services.settings.sharing == "chat"


def _store(services: Services, event: MessageEvent) -> ChatConversations:
    speaker = event.sender_open_id
    context = memory_context(
        chat_id=event.chat_id,
        root=event.root_id or event.message_id,
        subject=speaker,
        actor=speaker,
        tenant_key=event.tenant_key,
    )
    return ChatConversations(services.rpc, context)


def _timeout_ms(services: Services) -> int:
    return int(services.settings.conversation_timeout_seconds * 1000)


def _conversations(services: Services, event: MessageEvent) -> ConversationManager:
    return ConversationManager(
        _store(services, event),
        timeout_seconds=services.settings.conversation_timeout_seconds,
        clock=lambda: int(services.clock() * 1000),
    )


def record_of_list(names: Names, app_id: str, raw: RawMessage, bot: Person) -> MessageRecord:
    """A message as Feishu lists it."""
    ours = raw.sender_id == app_id
    record = MessageRecord(
        author=bot.name if ours else names.name(raw.sender_id),
        author_id=bot.open_id if ours else raw.sender_id,
        content=raw_text(raw, names.known),
        timestamp=raw.create_time_ms,
        is_bot=ours or raw.sender_type != "user",
        message_id=raw.message_id,
        root_id=raw.root_id or None if raw.thread_id else None,
        quotes="" if raw.thread_id else raw.parent_id,
    )
    return replace(record, ours=ours)
