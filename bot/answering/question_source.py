"""A question as it arrived, and what Feishu says of the messages that it is about."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from bot.agents.prompts.quotation import remark
from bot.feishu.denials import is_refused
from bot.feishu.errors import Action, FeishuError, FeishuFailure
from bot.feishu.manifest import GROUP_MESSAGES
from bot.feishu.models import RawMessage
from bot.listening.transcript import MessageRecord
from bot.listening.turn_request import TurnRequest
from bot.services import Services
from bot.text.roster import Person
from memory.models import StoredMessage
from memory.scope import AgentMemoryContext

log = structlog.get_logger()

_QUOTE_WITHIN_S = 1.5
_DENIAL = "get_message"


@dataclass(frozen=True, slots=True)
class QuestionSource:
    """A question as it arrived.

    `history` is what the model sees anyway, `talk` the recent messages of the chat. For a question
    that is asked again, `asked_in` is the message in which it was written, and `first_read` the
    messages that its first answer was given. Of messages older than `told_since_ms` (ms since
    epoch), the model sees only those that the question quotes.
    """

    request: TurnRequest
    context: AgentMemoryContext
    bot: Person
    history: Sequence[StoredMessage] = ()
    talk: Sequence[MessageRecord] = ()
    first_read: Sequence[str] = ()
    asked_in: str = ""
    told_since_ms: int = 0


async def fetched(services: Services, request: TurnRequest, message_id: str) -> list[RawMessage]:
    """The message, of a forward also its children; [] where Feishu does not give it in time."""
    try:
        async with asyncio.timeout(_QUOTE_WITHIN_S):
            if await is_refused(services.feishu, services.denials, _DENIAL, request.chat_type):
                return []
            messages = await services.feishu.get_message(message_id, user_card_content=True)
    except (TimeoutError, FeishuFailure) as exc:
        if isinstance(exc, FeishuError) and exc.action is Action.ALERT:
            services.denials.note(_DENIAL, request.chat_type, exc)
        log.info("incoming.message_unavailable", error=type(exc).__name__)
        return []
    services.denials.allow(_DENIAL, request.chat_type)
    return messages


def unreadable(services: Services, request: TurnRequest, what: str) -> str:
    """A remark that `what` could not be read. It names the missing scope where that is why."""
    if request.chat_type != "p2p" and services.denials.lacks(GROUP_MESSAGES):
        return remark(
            f"{what} could not be read: in groups that needs the Feishu scope {GROUP_MESSAGES}, "
            "which an administrator can grant; say so"
        )
    return remark(f"{what} could not be read; say so")
