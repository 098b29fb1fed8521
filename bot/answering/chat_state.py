"""The conversation of the chat a request is from, as the store has it."""

from __future__ import annotations

from dataclasses import replace

import structlog

from bot.conversation import ConversationManager
from bot.listening.conversation_store import ChatConversations
from bot.listening.turn_request import TurnRequest
from bot.services import Services
from memory.errors import StoreError
from memory.scope import memory_context, thread_root

log = structlog.get_logger()


def root_of(request: TurnRequest, *, reply_in_thread: bool) -> str:
    """The root of the conversation that a message belongs to."""
    return thread_root(
        message_id=request.message_id,
        root_id=request.root_id,
        chat_type=request.chat_type,
        reply_in_thread=reply_in_thread,
        thread_id=request.thread_id,
        topic_group=request.threaded,
    )


async def within_topic(services: Services, request: TurnRequest) -> TurnRequest:
    """The message, `threaded` if its `root_id` alone names its topic, as it may in a topic group.
    Known from the memory; elsewhere, and while that is away, a `root_id` is a quotation."""
    unclear = request.root_id and not request.in_thread and request.chat_type != "p2p"
    if not unclear or services.membership is None:
        return request
    try:
        return replace(request, threaded=await services.membership.is_topic_group(request.chat_id))
    except StoreError as exc:
        log.info("topics.not_known", chat_id=request.chat_id, error=type(exc).__name__)
        return request


def follows(services: Services, request: TurnRequest) -> bool:
    return request.chat_type != "p2p" and services.settings.sharing == "chat"


def store_of(services: Services, request: TurnRequest) -> ChatConversations:
    speaker = request.sender_open_id
    context = memory_context(
        chat_id=request.chat_id,
        root=root_of(request, reply_in_thread=services.settings.reply_in_thread),
        subject=speaker,
        actor=speaker,
        tenant_key=request.tenant_key,
    )
    return ChatConversations(services.rpc, context, services.transcripts)


def timeout_ms(services: Services) -> int:
    return int(services.settings.conversation_timeout_seconds * 1000)


def conversations_of(services: Services, request: TurnRequest) -> ConversationManager:
    return ConversationManager(
        store_of(services, request),
        timeout_seconds=services.settings.conversation_timeout_seconds,
        clock=lambda: int(services.clock() * 1000),
    )
