"""After an answer that a document was wanted for: who asked is shown how to connect, alone."""

from __future__ import annotations

import structlog

from bot.answering.question import Turn
from bot.features.connect.asking import ask
from bot.services import Services
from bot.text.languages import Language
from memory.errors import StoreError
from memory.identity import FeishuPerson
from memory.tables.user_tokens import AskPlace

log = structlog.get_logger()


async def offer_connection(services: Services, turn: Turn, language: Language) -> None:
    """Shows the link, unless they have one that they have not used yet. Never raises: `/connect`
    does the same."""
    access, context = services.access, turn.context
    if access is None or context.actor_tenant:
        return
    person = FeishuPerson(context.tenant_key, context.actor_id)
    beside = context.chat_id if turn.in_group and not turn.request.in_thread else ""
    place = AskPlace(context.chat_id, turn.chat_type, language, beside)
    try:
        found = await access.store.get(person)
        if found and (found.granted_ms or (found.ask and not found.ask.outcome)):
            return
        outcome = await ask(services, access, person, turn.id, place)
    except StoreError as exc:
        log.warning("connect.not_offered", error=type(exc).__name__)
        return
    log.info("connect.offered", outcome=outcome)
