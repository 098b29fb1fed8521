"""A plain “stop” or “停一下” that addresses nobody ends the answer that is being written there.

Only where one is, and only by who asked for it or is meant: everywhere else people use these words
among themselves.
"""

from __future__ import annotations

from bot.feishu.events import MessageEvent
from bot.group.decisions import IncomingMessage
from bot.services import Services
from bot.slash import may_stop
from memory.errors import StoreUnavailable
from memory.scope import memory_context, thread_root


async def ends_an_answer(services: Services, event: MessageEvent, message: IncomingMessage) -> bool:
    """Whether a message of a group that does not address the bot ends an answer in its thread."""
    to_others = message.mentions_others or message.replies_to_other
    if message.is_bot or to_others or not may_stop(message.text):
        return False
    root = thread_root(
        message_id=event.message_id,
        root_id=event.root_id or None,
        chat_type=event.chat_type,
        reply_in_thread=services.settings.reply_in_thread,
    )
    here = memory_context(
        chat_id=event.chat_id,
        root=root,
        subject=message.author_id,
        actor=message.author_id,
        tenant_key=event.tenant_key,
    )
    try:
        running = await services.store.running_turns(here, turn_id=event.message_id, in_thread=True)
    except StoreUnavailable:
        return False
    return bool(running)
