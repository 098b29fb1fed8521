"""What a digest is made of: what is stored of the chat, and what else was said there.

What nobody said to the bot is not kept; it is read from Feishu for the digest, as everybody in the
chat can read it. What was said to the bot is only what is stored: the rest was forgotten.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

import structlog

from bot.answering.documents_behind import DocumentsBehind
from bot.feishu.content import UNREADABLE_CARD
from bot.feishu.denials import is_refused
from bot.feishu.errors import FeishuError, FeishuFailure
from bot.feishu.models import RawMessage
from bot.feishu.received import raw_text
from bot.listening.conversation_store import ChatConversations
from bot.services import Services
from memory.scope import AgentMemoryContext
from memory.tables.digests import MOST, ChatMessage, DigestStore

log = structlog.get_logger()

Seen = Literal["all", "newest", "heard"]

_API = "list_messages"
_WITHIN_S = 20.0
_MOST_THREADS = 30
_MOST_OF_A_THREAD = 50  # one page
_WORDLESS = frozenset({"", UNREADABLE_CARD, "[sticker]", "[voice message]"})


@dataclass(frozen=True, slots=True)
class DigestSpan:
    """What a digest tells of: a time (both ends aware), or in it the thread `root`."""

    since: datetime
    until: datetime
    root: str | None = None


@dataclass(frozen=True, slots=True)
class Gathered:
    """What was said, oldest first. `seen`: all of it, the newest of it, or only what the bot heard;
    `wordless`: how many messages besides have no words, such as stickers and voice."""

    said: tuple[ChatMessage, ...]
    seen: Seen = "all"
    wordless: int = 0


async def gathered(services: Services, context: AgentMemoryContext, span: DigestSpan) -> Gathered:
    """What there is to tell. Raises `StoreError`."""
    material = await _gathered(services, context, span)
    answers = [one.message_id for one in material.said if one.card]
    if services.access is None or not answers:
        return material
    hidden_ids = await DocumentsBehind(services, context).untellable(answers)
    return replace(
        material, said=tuple(one for one in material.said if one.message_id not in hidden_ids)
    )


async def _gathered(services: Services, context: AgentMemoryContext, span: DigestSpan) -> Gathered:
    span = await _as_far_as_told(services, context, span)
    digests = DigestStore(services.rpc)
    stored_messages = await digests.material(
        context, since=span.since, until=span.until, root=span.root
    )
    if context.chat_type == "p2p":
        return Gathered(stored_messages, "newest" if len(stored_messages) >= MOST else "all")
    if services.settings.sharing != "chat" or await is_refused(
        services.feishu, services.denials, _API, "group"
    ):
        return Gathered(stored_messages, "heard")
    try:
        async with asyncio.timeout(_WITHIN_S):
            raw_messages, whole = await _listed(services, context, span)
            others = await _talk(services, context, raw_messages, digests)
    except (TimeoutError, FeishuFailure) as exc:
        if isinstance(exc, FeishuError) and not exc.action.is_of_one_call:
            services.denials.note(_API, "group", exc)
        log.info("digest.not_listed", error=type(exc).__name__)
        return Gathered(stored_messages, "heard")
    services.denials.allow(_API, "group")
    stored_ids = {one.message_id for one in stored_messages}
    new = [one for one in others if one.message_id not in stored_ids]
    messages = sorted(
        (*stored_messages, *(one for one in new if one.content.strip())), key=lambda one: one.at_ms
    )
    wordless = sum(not one.content.strip() for one in new)
    whole = whole and len(messages) <= MOST and len(stored_messages) < MOST
    return Gathered(tuple(messages[-MOST:]), "all" if whole else "newest", wordless)


async def _as_far_as_told(
    services: Services, context: AgentMemoryContext, span: DigestSpan
) -> DigestSpan:
    """The span without what newcomers do not see, where the chat says so."""
    rules = await ChatConversations(services.rpc, context).rules(services.settings)
    since = datetime.fromtimestamp(rules.told_since_ms / 1000, span.since.tzinfo)
    return replace(span, since=max(span.since, since))


async def _listed(
    services: Services, context: AgentMemoryContext, span: DigestSpan
) -> tuple[list[RawMessage], bool]:
    """What Feishu lists of it, and whether that is all. A thread that began earlier is not found by
    its chat's list."""
    since_ms, until_ms = span.since.timestamp() * 1000, span.until.timestamp() * 1000
    if span.root:
        root = await services.feishu.get_message(span.root, user_card_content=True)
        thread = root[0].thread_id if root else ""
        raw_messages = await _thread(services, thread, MOST) if thread else list(root)
        return [raw for raw in raw_messages if raw.create_time_ms >= since_ms], len(
            raw_messages
        ) < MOST
    main = await services.feishu.list_messages(
        "chat",
        context.chat_id,
        start_s=int(span.since.timestamp()),
        end_s=int(span.until.timestamp()) + 1,
        descending=True,
        max_items=MOST,
        user_card_content=True,
    )
    threads = list(dict.fromkeys(raw.thread_id for raw in main if raw.thread_id))
    whole = len(main) < MOST and len(threads) <= _MOST_THREADS
    under: list[RawMessage] = []
    for thread in threads[:_MOST_THREADS]:
        newest = await _thread(services, thread, _MOST_OF_A_THREAD)
        whole = whole and len(newest) < _MOST_OF_A_THREAD
        under += newest
    return [raw for raw in (*main, *under) if since_ms <= raw.create_time_ms <= until_ms], whole


async def _thread(services: Services, thread_id: str, most: int) -> list[RawMessage]:
    """The newest of it, newest first."""
    return await services.feishu.list_messages(
        "thread", thread_id, descending=True, max_items=most, user_card_content=True
    )


async def _talk(
    services: Services,
    context: AgentMemoryContext,
    raw_messages: Sequence[RawMessage],
    digests: DigestStore,
) -> list[ChatMessage]:
    """What people said among themselves and did not have forgotten."""
    bot = await services.own_person.look_up()
    talk = {
        raw.message_id: raw
        for raw in raw_messages
        if not raw.deleted
        and raw.sender_type == "user"
        and raw.message_type != "system"  # such as who joined
        and not any(mention.open_id == bot.open_id for mention in raw.mentions)
    }
    people = {raw.sender_id for raw in talk.values()}
    names = services.people.of(context.tenant_key)
    await names.look_up(people)
    messages = _said(talk.values(), names.known, names.name)
    gone_ids = await digests.gone(messages)
    return [one for one in messages if one.message_id not in gone_ids]


def _said(
    talk: Iterable[RawMessage], names: Mapping[str, str], name: Callable[[str], str]
) -> list[ChatMessage]:
    """As stored messages are; without text where there are no words."""
    return [
        ChatMessage(
            raw.message_id,
            name(raw.sender_id),
            raw.sender_id,
            "" if (text := raw_text(raw, names)).strip() in _WORDLESS else text,
            raw.create_time_ms,
            card=False,
        )
        for raw in talk
    ]
