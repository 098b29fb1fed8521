"""A plain “stop” or “停一下” that addresses nobody ends the answer that is being written there.

Only where one is, and only by who asked for it or is meant: everywhere else people use these words
among themselves.
"""

from __future__ import annotations

from bot.answering.chat_state import root_of
from bot.listening.decisions import IncomingMessage
from bot.listening.turn_request import TurnRequest
from bot.services import Services
from bot.text.slash_commands import may_stop
from memory.errors import StoreUnavailable
from memory.scope import memory_context


async def ends_an_answer(
    services: Services, request: TurnRequest, message: IncomingMessage
) -> bool:
    """Whether a message of a group that does not address the bot ends an answer in its thread."""
    to_others = message.mentions_others or message.replies_to_other
    if message.is_bot or to_others or not may_stop(message.text):
        return False
    return await is_answering(services, request, message.author_id)


async def is_answering(services: Services, request: TurnRequest, open_id: str) -> bool:
    """Whether an answer to that person, or about them, is being written in that thread."""
    here = memory_context(
        chat_id=request.chat_id,
        root=root_of(request, reply_in_thread=services.settings.reply_in_thread),
        subject=open_id,
        actor=open_id,
        tenant_key=request.tenant_key,
    )
    try:
        running = await services.store.running_turns(
            here, turn_id=request.message_id, in_thread=True
        )
    except StoreUnavailable:
        return False
    return bool(running)
