"""What is answered when the day's tokens of a person or a chat are used up."""

from __future__ import annotations

import structlog

from bot.answering.question import Turn
from bot.answering.texts import say
from bot.process import timing
from bot.services import Services
from bot.text.languages import Language

log = structlog.get_logger()


def used_up(services: Services, turn: Turn, language: Language) -> str:
    """The honest sentence at a limit of tokens; "" when there is none in the way."""
    who, place = turn.context.actor_id, turn.context.chat_id
    limit = services.allowance.reached(services.now().date(), who, place)
    if limit is None:
        return ""
    timing.note(limit=limit)
    log.info("usage.limit_reached", turn_id=turn.id, limit=limit)
    return say(f"used-up-{limit}", language, zone=services.settings.zone.key)
