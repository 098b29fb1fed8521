"""The chat of a request: whom its mentions name, which thread it is in, and what was said there.

`enter_chat` is the first step of a turn. Everything after it asks the `RequestChat`.
Source: Feishu, "User identity", "Obtain message content"."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

import structlog

from bot.conversation import ConversationManager
from bot.feishu.errors import FeishuError, FeishuFailure
from bot.feishu.models import RawMessage, message_text
from bot.listening.conversation_store import ChatConversations
from bot.listening.transcript import MessageRecord
from bot.listening.turn_request import TurnRequest
from bot.people.people_directory import Names
from bot.services import Services
from bot.text.roster import Person
from memory.errors import StoreError
from memory.scope import AgentMemoryContext, FeishuPerson, memory_context, thread_root

log = structlog.get_logger()

LOOK_BACK_TIMEOUT_S = 1.0
_RECENT = 20
_RECENT_S = 3600
_OWN_IDS_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class RequestChat:
    """The chat of one request, as the bot and the request's sender see it.

    `root` is that of the thread. `sender_context` is the sender there, about themselves; it reaches
    what was said in this chat only, and so do `conversations`.
    `is_followed`: what people say in the chat is recorded while a conversation is on.
    """

    services: Services
    request: TurnRequest
    bot: Person
    root: str
    sender_context: AgentMemoryContext
    conversations: ChatConversations
    is_followed: bool

    @property
    def asker(self) -> FeishuPerson:
        return FeishuPerson(self.request.tenant_key, self.request.sender_open_id)

    @property
    def timeout_ms(self) -> int:
        """How long a conversation stays on if nobody writes."""
        return int(self.services.settings.conversation_timeout_seconds * 1000)

    @property
    def manager(self) -> ConversationManager:
        return ConversationManager(
            self.conversations,
            timeout_seconds=self.services.settings.conversation_timeout_seconds,
            clock=lambda: int(self.services.clock() * 1000),
        )

    def context_about(self, subject: str) -> AgentMemoryContext:
        """Returns the memory of `subject` (open_id), asked by the sender in this thread."""
        request = self.request
        return memory_context(
            chat_id=request.chat_id,
            root=self.root,
            subject=subject,
            actor=request.sender_open_id,
            tenant_key=request.tenant_key,
            chat_type=request.audience,
            actor_tenant=request.sender_tenant,
        )

    async def is_own_message(self, message_id: str) -> bool:
        """True if this bot sent the message. False if Feishu does not say."""
        try:
            async with asyncio.timeout(LOOK_BACK_TIMEOUT_S):
                messages = await self.services.feishu.get_message(message_id)
        except (TimeoutError, FeishuFailure):
            return False
        app_id = self.services.settings.feishu_app_id
        return bool(messages) and messages[0].sender_id == app_id

    async def recent_messages(self) -> tuple[MessageRecord, ...]:
        """Returns the messages in the chat, or the thread, before the request, oldest first; () if
        the scope is missing or Feishu does not answer in time."""
        services, request = self.services, self.request
        if services.denials.stands("list_messages", request.chat_type):
            return ()
        in_thread = bool(request.thread_id)
        now = int(services.clock())
        try:
            async with asyncio.timeout(LOOK_BACK_TIMEOUT_S):
                messages = await services.feishu.list_messages(
                    "thread" if in_thread else "chat",
                    request.thread_id if in_thread else request.chat_id,
                    start_s=None if in_thread else now - _RECENT_S,
                    end_s=None if in_thread else now,
                    descending=True,
                    page_size=_RECENT,
                    max_items=_RECENT,
                    user_card_content=True,
                )
        except (TimeoutError, FeishuFailure) as exc:
            if isinstance(exc, FeishuError) and not exc.action.is_of_one_call:
                services.denials.note("list_messages", request.chat_type, exc)
            log.info("recent_messages.unavailable", error=type(exc).__name__)
            return ()
        services.denials.allow("list_messages", request.chat_type)
        names = services.people.of(request.tenant_key)
        app_id = services.settings.feishu_app_id
        here = [one for one in messages if not one.deleted and one.chat_id in ("", request.chat_id)]
        records = [record_of_list(names, app_id, raw, self.bot) for raw in reversed(here)]
        return tuple(r for r in records if r.content and r.message_id != request.message_id)


async def enter_chat(services: Services, request: TurnRequest) -> RequestChat:
    """Returns the chat of a message that has just arrived. Looks up its people, and gives its
    mentions the ids that our app knows."""
    bot = await services.own_person.look_up()
    if _may_be_meant(request, bot):
        request = await _with_own_ids(services, request)
    request = await _with_topic(services, request)
    services.people.meet(request, bot)
    await services.people.look_up_sender(request)
    return chat_of(services, request, bot)


async def own_thread(services: Services, request: TurnRequest) -> RequestChat:
    """Returns the chat of a message for callers that only need its thread."""
    bot = await services.own_person.look_up()
    return chat_of(services, await _with_topic(services, request), bot)


def chat_of(services: Services, request: TurnRequest, bot: Person) -> RequestChat:
    """Returns the chat of a request whose topic and mentions are known."""
    settings, sender = services.settings, request.sender_open_id
    root = thread_root(
        message_id=request.message_id,
        root_id=request.root_id,
        chat_type=request.chat_type,
        reply_in_thread=settings.reply_in_thread,
        thread_id=request.thread_id,
        topic_group=request.threaded,
    )
    sender_context = memory_context(
        chat_id=request.chat_id,
        root=root,
        subject=sender,
        actor=sender,
        tenant_key=request.tenant_key,
    )
    return RequestChat(
        services,
        request,
        bot,
        root,
        sender_context,
        ChatConversations(services.rpc, sender_context, services.transcripts),
        is_followed=request.chat_type != "p2p" and settings.sharing == "chat",
    )


async def _with_topic(services: Services, request: TurnRequest) -> TurnRequest:
    """Returns the message, `threaded` if only its `root_id` names its topic, as it may in a topic
    group. The memory knows topic groups; elsewhere, and while it is away, a `root_id` is a
    quotation."""
    unclear = request.root_id and not request.in_thread and request.chat_type != "p2p"
    if not unclear or services.membership is None:
        return request
    try:
        return replace(request, threaded=await services.membership.is_topic_group(request.chat_id))
    except StoreError as exc:
        log.info("topics.not_known", chat_id=request.chat_id, error=type(exc).__name__)
        return request


def _may_be_meant(request: TurnRequest, bot: Person) -> bool:
    """True if a mention may name this bot by another id: one with its name, or with some bot's name
    if a bot wrote the message. A name alone proves nothing, so only then is Feishu asked."""
    if not request.mentions or request.is_for(bot.open_id):
        return False
    by_bot, own_name = request.sender_type != "user", bot.name.casefold()
    return any(
        one.name.casefold() == own_name or (by_bot and one.is_bot) for one in request.mentions
    )


async def _with_own_ids(services: Services, request: TurnRequest) -> TurnRequest:
    """Returns the message with the ids that its mentions have for our app; unchanged if Feishu does
    not say."""
    try:
        async with asyncio.timeout(_OWN_IDS_TIMEOUT_S):
            messages = await services.feishu.get_message(request.message_id)
    except (TimeoutError, FeishuFailure) as exc:
        log.info("mentions.unread", message_id=request.message_id, error=type(exc).__name__)
        return request
    own_mentions = {one.key: one for one in messages[0].mentions if one.open_id} if messages else {}
    mentions = tuple(
        replace(one, open_id=own_mentions[one.key].open_id) if one.key in own_mentions else one
        for one in request.mentions
    )
    return replace(request, mentions=mentions)


def record_of_list(names: Names, app_id: str, raw: RawMessage, bot: Person) -> MessageRecord:
    """Returns a message of Feishu's list as a record."""
    ours = raw.sender_id == app_id
    record = MessageRecord(
        author=bot.name if ours else _author(names, raw),
        author_id=bot.open_id if ours else raw.sender_id,
        content=message_text(raw, names.known),
        timestamp=raw.create_time_ms,
        is_bot=ours or raw.sender_type != "user",
        message_id=raw.message_id,
        root_id=raw.root_id or None if raw.thread_id else None,
        quotes="" if raw.thread_id else raw.parent_id,
    )
    return replace(record, ours=ours)


def _author(names: Names, raw: RawMessage) -> str:
    """Returns the author's id. Feishu lists apps by their app_id, which no other call uses."""
    return "" if raw.sender_id_type == "app_id" else names.name(raw.sender_id)
