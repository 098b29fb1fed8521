"""What is answered when the day's tokens of a person or a chat are used up."""

from __future__ import annotations

import structlog

from bot.answering.question import Turn
from bot.services import Services
from bot.telemetry import timing
from bot.text.languages import Language, Sentence

log = structlog.get_logger()

USED_UP = {
    "person": Sentence(
        "You have used up today's allowance of the model, so I cannot answer this now. It begins "
        "anew at midnight ({zone}); commands such as `/memory` still work. Whoever runs me can "
        "raise the limit.",
        "你今天的模型用量已达上限，这个问题暂时无法回答。零点（{zone}）后恢复；"
        "`/memory` 等命令仍可使用。管理员可以提高上限。",
    ),
    "chat": Sentence(
        "This chat has used up today's allowance of the model, so I cannot answer this now. It "
        "begins anew at midnight ({zone}); commands such as `/memory` still work. Whoever runs me "
        "can raise the limit.",
        "本会话今天的模型用量已达上限，这个问题暂时无法回答。零点（{zone}）后恢复；"
        "`/memory` 等命令仍可使用。管理员可以提高上限。",
    ),
}


def used_up(services: Services, turn: Turn, language: Language) -> str:
    """The honest sentence at a limit of tokens; "" when there is none in the way."""
    who, place = turn.context.actor_id, turn.context.chat_id
    limit = services.allowance.reached(services.now().date(), who, place)
    if limit is None:
        return ""
    timing.note(limit=limit)
    log.info("usage.limit_reached", turn_id=turn.id, limit=limit)
    return USED_UP[limit].said(language).format(zone=services.settings.zone.key)
