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
from memory.tables.user_tokens import Ask, AskPlace, Connection, WaitingAnswer

log = structlog.get_logger()


async def offer_access(
    services: Services,
    turn: Turn,
    language: Language,
    answer_id: str,
    *,
    unconnected: bool,
    wanted: Collection[str],
) -> None:
    """Shows the asker the link for what their question needed: reading documents (`unconnected`),
    or the scopes `wanted`. Once they grant it, the question of the answer `answer_id` (a
    message_id, "": none) is asked again. Never raises: `/connect` and asking again do the same."""
    access, context = services.access, turn.context
    if access is None or context.actor_tenant or not (unconnected or wanted):
        return
    scopes = DOCUMENTS if unconnected else tuple(dict.fromkeys((OFFLINE, *wanted)))
    person = FeishuPerson(context.tenant_key, context.actor_id)
    beside = context.chat_id if turn.in_group and not turn.request.in_thread else ""
    waiting = (WaitingAnswer(context.chat_id, answer_id),) if answer_id else ()
    place = AskPlace(context.chat_id, turn.chat_type, language, beside, waiting)
    try:
        found = await access.store.get(person)
        if found and found.granted_ms and unconnected:
            return
        if asked := _waits_for(found, scopes):
            for answer in waiting:
                await access.store.note_waiting(person, asked.id, answer)
            return
        outcome = await ask(services, access, person, turn.id, place, scopes)
    except StoreError as exc:
        log.warning("connect.not_offered", error=type(exc).__name__)
        return
    log.info("connect.offered", outcome=outcome)


def _waits_for(found: Connection | None, scopes: tuple[str, ...]) -> Ask | None:
    """The link for all of it that waits for them already."""
    asked = found.ask if found else None
    return asked if asked and not asked.outcome and set(scopes) <= set(asked.scopes) else None
