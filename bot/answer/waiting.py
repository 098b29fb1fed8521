"""A question that is heard in a chat that wants proactive answers waits for somebody to answer."""

from __future__ import annotations

import structlog

from bot.feishu.events import MessageEvent
from bot.group.decisions import Decision, IncomingMessage
from bot.group.unasked import may_wait
from bot.services import Services
from memory.errors import StoreError
from memory.kept.proactive import ProactiveStore
from memory.scope import memory_context, thread_root

log = structlog.get_logger()


async def wait_for_others(
    services: Services, event: MessageEvent, message: IncomingMessage, decision: Decision
) -> None:
    """Notes when to look at it again. A question that cannot be noted is not answered."""
    settings = services.settings
    if not settings.proactive or event.message_type != "text" or not may_wait(message, decision):
        return
    root = thread_root(
        message_id=event.message_id,
        root_id=event.root_id if event.thread_id else None,
        chat_type=event.chat_type,
        reply_in_thread=settings.reply_in_thread,
    )
    context = memory_context(
        chat_id=event.chat_id,
        root=root,
        subject=event.sender_open_id,
        actor=event.sender_open_id,
        tenant_key=event.tenant_key,
        chat_type="group",
    )
    due_ms = message.timestamp + settings.proactive_after_minutes * 60_000
    try:
        await ProactiveStore(services.rpc).wait(
            context, event.message_id, message.text, message.timestamp, due_ms
        )
    except StoreError as exc:
        log.warning("proactive.not_noted", error=type(exc).__name__, code=exc.code)
