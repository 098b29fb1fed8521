"""What is answered when the day's tokens of a person or a chat are used up."""

from __future__ import annotations

import structlog

from bot.answering.question import Turn, language
from bot.answering.texts import say
from bot.process import timing
from bot.services import Services
from memory.models import OpenTurn

log = structlog.get_logger()


def used_up(services: Services, turn: Turn, open_turn: OpenTurn) -> str:
    """The honest sentence at a limit of tokens; "" when there is none in the way."""
    who, place = turn.context.actor_id, turn.context.chat_id
    limit = services.allowance.reached(services.now().date(), who, place)
    if limit is None:
        return ""
    timing.note(limit=limit)
    log.info("usage.limit_reached", turn_id=turn.id, limit=limit)
    reply_language = language(services, turn, open_turn)
    return say(f"used-up-{limit}", reply_language, zone=services.settings.zone.key)
