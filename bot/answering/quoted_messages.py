"""Reads the messages that a question quotes, up to three levels deep, and those that earlier lines
reply to."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import structlog

from bot.agents.prompts.prompt import quotation, remark, short_name
from bot.answering.request_chat import RequestChat
from bot.feishu import markup
from bot.feishu.content import UNREADABLE_CARD, holds_attachment
from bot.feishu.errors import Action, FeishuError, FeishuFailure, is_still_refused
from bot.feishu.fields import Attachment
from bot.feishu.manifest import GROUP_MESSAGES
from bot.feishu.models import (
    RETRACTED_TEXT,
    RawMessage,
    forward_text,
    is_forward,
    message_attachments,
    message_text,
)
from bot.listening.transcript import MessageRecord
from bot.listening.turn_request import TurnRequest
from bot.people.people_directory import Names
from bot.services import Services
from bot.text.roster import Person, from_card
from memory.errors import StoreError, StoreUnavailable
from memory.models import StoredMessage
from memory.scope import AgentMemoryContext

log = structlog.get_logger()
_MOST_LEVELS = 3
_MOST_LINES_ABOVE = 2
_LONGEST_OVERHEARD = 1000  # characters; longest_line in SQL

_QUOTE_WITHIN_S = 1.5
_DENIAL = "get_message"


@dataclass(frozen=True, slots=True)
class QuotedMessage:
    """`author` is a name, “someone”, or "" for the bot; `quotes` is what this one quotes."""

    author: str
    text: str
    message_id: str = ""
    attachments: tuple[Attachment, ...] = ()
    quotes: str = ""
    is_forward: bool = False

    @property
    def label(self) -> str:
        forwarded = ", forwarded" if self.is_forward else ""
        return f"Quoted message of {self.author or 'yourself'}{forwarded}"


UNREAD = QuotedMessage("", "")


async def quotation_chain(
    services: Services, source: QuestionSource, deadline: float
) -> list[QuotedMessage]:
    """What the question quotes, and what that quotes, as far as it can be read before `deadline`
    (of the event loop). What the model sees anyway, or may not see, ends it."""
    first_quoted = await _first(services, source) if source.request.parent_id else None
    if first_quoted is None:
        return []
    chain, seen_ids = [first_quoted], {source.request.message_id, first_quoted.message_id}
    while len(chain) < _MOST_LEVELS and (parent := chain[-1].quotes) and parent not in seen_ids:
        seen_ids.add(parent)
        try:
            async with asyncio.timeout_at(deadline):
                further = await _quoted_further(services, source, parent)
        except TimeoutError:
            further = UNREAD
        if further is None:
            break
        chain.append(further)
    return chain


async def lines_above(
    services: Services, source: QuestionSource, deadline: float
) -> list[QuotedMessage]:
    """What the newest lines of the conversation reply to, where the conversation lacks it and it
    can be read before `deadline`."""
    message_ids = {one.message_id for one in source.history}
    replies = (one.replies_to for one in reversed(source.history[:-1]) if one.role == "user")
    wanted_ids = [one for one in dict.fromkeys(replies) if one and one not in message_ids]
    looks = [_quoted_further(services, source, one) for one in wanted_ids[:_MOST_LINES_ABOVE]]
    try:
        async with asyncio.timeout_at(deadline):
            lines = await asyncio.gather(*looks)
    except TimeoutError:
        return []
    return [one for one in lines if one and one.text not in ("", RETRACTED_TEXT)]


def shown_quotation(
    services: Services, request: TurnRequest, level: int, quoted_message: QuotedMessage
) -> str:
    """The message as a part of the prompt; `level` 0 is what the question quotes."""
    if quoted_message is UNREAD:
        what = "the message that the quoted one quotes" if level else "the quoted message"
        return unreadable_remark(services, request, what)
    label = (
        f"{quoted_message.label}, which the message above quotes" if level else quoted_message.label
    )
    return quotation(label, quoted_message.text)


async def _first(services: Services, source: QuestionSource) -> QuotedMessage | None:
    """The message that the question replies to: a quoted one, or the first of the thread.

    The first of a thread is left out where the model sees it anyway, or where it belongs to the
    bot's exchange with somebody else.
    """
    request, parent = source.request, source.request.parent_id
    in_talk = next((record for record in source.talk if record.message_id == parent), None)
    is_visible = _is_seen(source, parent)
    if in_talk and in_talk.content == UNREADABLE_CARD:
        in_talk = None
    is_in_prompt = is_visible or (in_talk and _is_whole(in_talk.content))
    if not request.quotes and is_in_prompt:
        return None
    if own := await _own(services, source.context, parent):
        from_memory = _from_memory(services.people.of(request.tenant_key), own)
        return await _with_attachments(services, request, from_memory)
    if in_talk and not in_talk.ours:
        from_memory = QuotedMessage(
            _author(in_talk.author), in_talk.content, parent, quotes=in_talk.quotes
        )
        return await _with_attachments(services, request, from_memory)
    messages = await fetched_messages(services, request, parent)
    if not messages or messages[0].chat_id not in ("", request.chat_id):
        return UNREAD if request.quotes else None
    return await _from_feishu(services, source, messages)


async def _quoted_further(
    services: Services, source: QuestionSource, message_id: str
) -> QuotedMessage | None:
    """A message that a quoted one quotes. It need not be known to who asks, so what the group keeps
    from them stays away; None: nothing of it is told."""
    request = source.request
    in_talk = next((record for record in source.talk if record.message_id == message_id), None)
    is_visible = _is_seen(source, message_id)
    if is_visible or (in_talk and _is_whole(in_talk.content)):
        return None
    if own := await _own(services, source.context, message_id):
        from_memory = _from_memory(services.people.of(request.tenant_key), own)
        return await _with_attachments(services, request, from_memory)
    messages = await fetched_messages(services, request, message_id)
    if not messages:
        return UNREAD
    raw = messages[0]
    if raw.chat_id not in ("", request.chat_id) or raw.create_time_ms < source.told_since_ms:
        return None
    return await _from_feishu(services, source, messages)


def _is_seen(source: QuestionSource, message_id: str) -> bool:
    """True if the conversation of the prompt has all of the message."""
    return any(
        one.message_id == message_id and (one.id >= 0 or _is_whole(one.content))
        for one in source.history
    )


def _is_whole(overheard: str) -> bool:
    """True if the prompt has all of it: it has the beginning, and no files and pictures."""
    return len(overheard) < _LONGEST_OVERHEARD and not holds_attachment(overheard)


async def _with_attachments(
    services: Services, request: TurnRequest, quoted_message: QuotedMessage
) -> QuotedMessage:
    """The quoted message with its files and pictures. Only Feishu knows their keys."""
    if not quoted_message.message_id or not holds_attachment(quoted_message.text):
        return quoted_message
    messages = await fetched_messages(services, request, quoted_message.message_id)
    if not messages or messages[0].chat_id not in ("", request.chat_id):
        return quoted_message
    return replace(quoted_message, attachments=message_attachments(messages[0]))


async def _own(
    services: Services, context: AgentMemoryContext, message_id: str
) -> StoredMessage | None:
    try:
        return await services.store.said(context, message_id)
    except StoreUnavailable as exc:
        log.warning("incoming.memory_away", error=type(exc).__name__, code=exc.code)
    except StoreError as exc:
        log.error("incoming.quote_refused", error=type(exc).__name__, code=exc.code)
    return None


def _from_memory(names: Names, own: StoredMessage) -> QuotedMessage:
    if own.role == "user":
        return QuotedMessage(_author(own.actor_name), own.content, own.message_id or "")
    text = from_card(own.content, names.known, unescape=markup.unescape)
    return QuotedMessage("", text, own.message_id or "")


async def _from_feishu(
    services: Services, source: QuestionSource, messages: Sequence[RawMessage]
) -> QuotedMessage | None:
    raw = messages[0]
    ours = raw.sender_id == services.settings.feishu_app_id
    to_bot = any(mention.open_id == source.bot.open_id for mention in raw.mentions)
    is_too_early = raw.create_time_ms < source.told_since_ms
    first = raw.message_id == source.request.parent_id
    if first and not source.request.quotes and (ours or to_bot or is_too_early):
        return None
    people = {one.sender_id for one in messages if one.sender_type == "user"}
    names = services.people.of(source.request.tenant_key)
    await names.look_up(people)
    author = "" if ours else _author(names.known.get(raw.sender_id, ""))
    quotes = _quotes(source, raw)
    if is_forward(raw.message_type):
        text = forward_text(messages, names.known)
        return QuotedMessage(author, text, raw.message_id, quotes=quotes, is_forward=True)
    text = message_text(raw, names.known)
    return QuotedMessage(author, text, raw.message_id, message_attachments(raw), quotes)


def _quotes(source: QuestionSource, raw: RawMessage) -> str:
    """The message that `raw` quotes. In a thread the parent is the thread's first message; only
    that one's own parent is a quote."""
    first = source.request.in_thread and raw.message_id == source.request.parent_id
    return "" if raw.deleted or (raw.thread_id and not first) else raw.parent_id


def _author(name: str) -> str:
    return short_name(name) or "someone"


@dataclass(frozen=True, slots=True)
class QuestionSource:
    """A question as it arrived.

    `history` is what the model sees anyway, `talk` the recent messages of the chat. For a question
    that is asked again, `asked_in` is the message in which it was written, and `first_read` the
    messages that its first answer was given. Of messages older than `told_since_ms` (ms since
    epoch), the model sees only those that the question quotes.
    """

    chat: RequestChat
    context: AgentMemoryContext
    history: Sequence[StoredMessage] = ()
    talk: Sequence[MessageRecord] = ()
    first_read: Sequence[str] = ()
    asked_in: str = ""
    told_since_ms: int = 0

    @property
    def request(self) -> TurnRequest:
        return self.chat.request

    @property
    def bot(self) -> Person:
        return self.chat.bot


async def fetched_messages(
    services: Services, request: TurnRequest, message_id: str
) -> list[RawMessage]:
    """The message, of a forward also its children; [] where Feishu does not give it in time."""
    try:
        async with asyncio.timeout(_QUOTE_WITHIN_S):
            if await is_still_refused(
                services.feishu, services.denials, _DENIAL, request.chat_type
            ):
                return []
            messages = await services.feishu.get_message(message_id, user_card_content=True)
    except (TimeoutError, FeishuFailure) as exc:
        if isinstance(exc, FeishuError) and exc.action is Action.ALERT:
            services.denials.note(_DENIAL, request.chat_type, exc)
        log.info("incoming.message_unavailable", error=type(exc).__name__)
        return []
    services.denials.allow(_DENIAL, request.chat_type)
    return messages


def unreadable_remark(services: Services, request: TurnRequest, what: str) -> str:
    """A remark that `what` could not be read. It names the missing scope where that is why."""
    if request.chat_type != "p2p" and services.denials.lacks(GROUP_MESSAGES):
        return remark(
            f"{what} could not be read: in groups that needs the Feishu scope {GROUP_MESSAGES}, "
            "which an administrator can grant; say so"
        )
    return remark(f"{what} could not be read; say so")
