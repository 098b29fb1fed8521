"""Mentions by ids of another app: an open_id is an app's own, and a bot that mentions this one may
use that of its app. The message as Feishu gives it to us has ours.

Source: Feishu, "User identity", "Obtain message content".
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import structlog

from bot.feishu.errors import FeishuFailure
from bot.listening.turn_request import TurnRequest
from bot.services import Services
from bot.text.roster import Person

log = structlog.get_logger()

_TIMEOUT_S = 2.0


def may_be_meant(request: TurnRequest, bot: Person) -> bool:
    """Whether a mention can be this bot's by another id: one of its name, or of some bot when a bot
    wrote the message. A name alone proves nothing: only then is it worth asking Feishu."""
    if not request.mentions or request.is_for(bot.open_id):
        return False
    by_bot, own_name = request.sender_type != "user", bot.name.casefold()
    return any(
        one.name.casefold() == own_name or (by_bot and one.is_bot) for one in request.mentions
    )


async def with_own_ids(services: Services, request: TurnRequest) -> TurnRequest:
    """The message with the ids that its mentions have for our app; as it is where Feishu does not
    say."""
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            messages = await services.feishu.get_message(request.message_id)
    except (TimeoutError, FeishuFailure) as exc:
        log.info("mentions.unread", message_id=request.message_id, error=type(exc).__name__)
        return request
    own_mentions = {one.key: one for one in messages[0].mentions if one.open_id} if messages else {}
    mentions = tuple(
        replace(one, open_id=own_mentions[one.key].open_id) if one.key in own_mentions else one
        for one in request.mentions
    )
    return replace(request, mentions=mentions)
