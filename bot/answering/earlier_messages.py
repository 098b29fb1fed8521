"""What was said in a chat before the bot was part of it, from Feishu's list where scopes allow."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import structlog

from bot.feishu.errors import FeishuError, FeishuFailure
from bot.feishu.models import RawMessage
from bot.feishu.received import raw_text
from bot.listening.transcript import MessageRecord
from bot.listening.turn_request import TurnRequest
from bot.people.names import Names
from bot.services import Services
from bot.text.roster import Person

log = structlog.get_logger()

LOOK_BACK_TIMEOUT_S = 1.0
_RECENT = 20
_RECENT_S = 3600


async def recent_messages(
    services: Services, request: TurnRequest, bot: Person
) -> tuple[MessageRecord, ...]:
    """What was said in the chat lately, from Feishu's list where the scope allows, oldest first."""
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
    records = [record_of_list(names, app_id, raw, bot) for raw in reversed(here)]
    return tuple(r for r in records if r.content and r.message_id != request.message_id)


def record_of_list(names: Names, app_id: str, raw: RawMessage, bot: Person) -> MessageRecord:
    """A message as Feishu lists it."""
    ours = raw.sender_id == app_id
    record = MessageRecord(
        author=bot.name if ours else _author(names, raw),
        author_id=bot.open_id if ours else raw.sender_id,
        content=raw_text(raw, names.known),
        timestamp=raw.create_time_ms,
        is_bot=ours or raw.sender_type != "user",
        message_id=raw.message_id,
        root_id=raw.root_id or None if raw.thread_id else None,
        quotes="" if raw.thread_id else raw.parent_id,
    )
    return replace(record, ours=ours)


def _author(names: Names, raw: RawMessage) -> str:
    """Apps are listed by their app_id, which nobody knows them by."""
    return "" if raw.sender_id_type == "app_id" else names.name(raw.sender_id)
