"""Feishu says where the bot is to speak that it is out of the chat: the event of that was lost."""

from __future__ import annotations

import structlog

from bot.feishu.errors import OUT_OF_CHAT, FeishuError
from bot.services import Services
from memory.scope import AgentMemoryContext
from memory.tables.chats import ChatStore

log = structlog.get_logger()


async def is_gone(
    services: Services, context: AgentMemoryContext, refusal: BaseException | None
) -> bool:
    """Whether Feishu refused because the bot is out of the chat; then its timers stop, unless later
    news says that the bot is back. Raises `StoreError`."""
    if not isinstance(refusal, FeishuError) or refusal.code not in OUT_OF_CHAT:
        return False
    has_left = await ChatStore(services.rpc).leave(
        context.tenant_key, context.chat_id, at_ms=int(services.clock() * 1000)
    )
    if has_left:
        log.info("chat.gone", chat_id=context.chat_id, code=refusal.code)
    return has_left
