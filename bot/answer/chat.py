"""The conversation of the chat an event is from, and the chat's rules, as the store has them."""

from __future__ import annotations

from bot.conversation import ConversationManager
from bot.feishu.events import MessageEvent
from bot.group.rules import ChatRules
from bot.group.store import ChatConversations
from bot.services import Services
from memory.errors import StoreUnavailable
from memory.scope import memory_context


def follows(services: Services, event: MessageEvent) -> bool:
    return event.chat_type != "p2p" and services.settings.sharing == "chat"


def store_of(services: Services, event: MessageEvent) -> ChatConversations:
    speaker = event.sender_open_id
    context = memory_context(
        chat_id=event.chat_id,
        root=event.root_id or event.message_id,
        subject=speaker,
        actor=speaker,
        tenant_key=event.tenant_key,
    )
    return ChatConversations(services.rpc, context)


def timeout_ms(services: Services) -> int:
    return int(services.settings.conversation_timeout_seconds * 1000)


def conversations_of(services: Services, event: MessageEvent) -> ConversationManager:
    return ConversationManager(
        store_of(services, event),
        timeout_seconds=services.settings.conversation_timeout_seconds,
        clock=lambda: int(services.clock() * 1000),
    )


async def chat_rules(services: Services, store: ChatConversations) -> ChatRules:
    """The rules of the chat; without memory those of the environment."""
    settings = services.settings
    usual = ChatRules(settings.chat_mode, settings.chat_language)
    try:
        return await store.rules(usual)
    except StoreUnavailable:
        return usual
