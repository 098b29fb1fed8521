"""A question that is heard in a chat that wants proactive answers waits for somebody to answer."""

from __future__ import annotations

import structlog

from bot.answering.chat_state import root_of
from bot.listening.decisions import Decision, IncomingMessage
from bot.listening.open_questions import may_wait
from bot.listening.turn_request import TurnRequest
from bot.services import Services
from memory.errors import StoreError
from memory.scope import memory_context
from memory.tables.proactive import ProactiveStore

log = structlog.get_logger()


async def wait_for_others(
    services: Services, request: TurnRequest, message: IncomingMessage, decision: Decision
) -> None:
    """Notes when to look at it again. A question that cannot be noted is not answered."""
    settings = services.settings
    if not settings.proactive or request.message_type != "text" or not may_wait(message, decision):
        return
    context = memory_context(
        chat_id=request.chat_id,
        root=root_of(request, reply_in_thread=settings.reply_in_thread),
        subject=request.sender_open_id,
        actor=request.sender_open_id,
        tenant_key=request.tenant_key,
        chat_type="group",
    )
    due_ms = message.timestamp + settings.proactive_after_minutes * 60_000
    try:
        await ProactiveStore(services.rpc).wait(
            context, request.message_id, message.text, message.timestamp, due_ms
        )
    except StoreError as exc:
        log.warning("proactive.not_noted", error=type(exc).__name__, code=exc.code)
