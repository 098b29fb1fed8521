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
    is_unconnected: bool,
    wanted_scopes: Collection[str],
) -> None:
    """Shows the asker the link for what their question needed: reading documents
    (`is_unconnected`), or the scopes `wanted_scopes`. Once they grant it, the question of the
    answer `answer_id` (a message_id, "": none) is asked again. Never raises: `/connect` and asking
    again do the same."""
    access, context = services.access, turn.context
    if access is None or context.actor_tenant or not (is_unconnected or wanted_scopes):
        return
    scopes = DOCUMENTS if is_unconnected else tuple(dict.fromkeys((OFFLINE, *wanted_scopes)))
    person = FeishuPerson(context.tenant_key, context.actor_id)
    beside = context.chat_id if turn.in_group and not turn.request.in_thread else ""
    waiting = (WaitingAnswer(context.chat_id, answer_id),) if answer_id else ()
    place = AskPlace(context.chat_id, turn.chat_type, language, beside, waiting)
    try:
        connection = await access.store.get(person)
        if connection and connection.granted_ms and is_unconnected:
            return
        if waiting_ask := _waits_for(connection, scopes):
            for answer in waiting:
                await access.store.note_waiting(person, waiting_ask.id, answer)
            return
        outcome = await ask(services, access, person, turn.id, place, scopes)
    except StoreError as exc:
        log.warning("connect.not_offered", error=type(exc).__name__)
        return
    log.info("connect.offered", outcome=outcome)


def _waits_for(connection: Connection | None, scopes: tuple[str, ...]) -> Ask | None:
    """The link for all of it that waits for them already."""
    waiting_ask = connection.ask if connection else None
    return (
        waiting_ask
        if waiting_ask and not waiting_ask.outcome and set(scopes) <= set(waiting_ask.scopes)
        else None
    )
