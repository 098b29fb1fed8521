"""After an answer that needed more than the person had granted: they are asked for it, alone."""

from __future__ import annotations

from collections.abc import Collection

import structlog

from bot.answering.question import Turn
from bot.features.connect.asking import ask
from bot.feishu.user_scopes import DOCUMENTS, OFFLINE
from bot.services import Services
from bot.text.languages import Language
from memory.errors import StoreError
from memory.identity import FeishuPerson
from memory.tables.user_tokens import AskPlace, Connection

log = structlog.get_logger()


async def offer_connection(services: Services, turn: Turn, language: Language) -> None:
    """Shows the link for reading documents, unless they have one that they have not used yet. Never
    raises: `/connect` does the same."""
    await _offer(services, turn, language, DOCUMENTS)


async def offer_scopes(
    services: Services, turn: Turn, language: Language, scopes: Collection[str]
) -> None:
    """Shows the link for just these scopes, which Feishu or the bot found missing. Never raises:
    asking again does the same."""
    await _offer(services, turn, language, tuple(dict.fromkeys((OFFLINE, *scopes))), more=True)


async def _offer(
    services: Services,
    turn: Turn,
    language: Language,
    scopes: tuple[str, ...],
    *,
    more: bool = False,
) -> None:
    access, context = services.access, turn.context
    if access is None or context.actor_tenant:
        return
    person = FeishuPerson(context.tenant_key, context.actor_id)
    beside = context.chat_id if turn.in_group and not turn.request.in_thread else ""
    place = AskPlace(context.chat_id, turn.chat_type, language, beside)
    try:
        found = await access.store.get(person)
        if found and ((found.granted_ms and not more) or _is_asked(found, scopes)):
            return
        outcome = await ask(services, access, person, turn.id, place, scopes)
    except StoreError as exc:
        log.warning("connect.not_offered", error=type(exc).__name__)
        return
    log.info("connect.offered", outcome=outcome)


def _is_asked(found: Connection, scopes: tuple[str, ...]) -> bool:
    """Whether a link for all of it waits for them already."""
    return bool(found.ask and not found.ask.outcome and set(scopes) <= set(found.ask.scopes))
