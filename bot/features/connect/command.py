"""`/connect`: what a person lets the bot do as them, asked for or ended. They alone see it."""

from __future__ import annotations

from functools import partial

import structlog

from bot.features.commands import texts as command_texts
from bot.features.connect import texts
from bot.features.connect.asking import ask
from bot.features.feature import CommandTurn, FeatureTurn, PressTurn
from bot.features.private_answers.ephemeral_answer import tell_asker
from bot.feishu.user_scopes import DOCUMENTS
from bot.outbox.buttons import Reply, decision
from bot.people.personal_access import PersonalAccess
from bot.services import Services
from memory.identity import FeishuPerson
from memory.outcomes import ELSEWHERE, apologised
from memory.scope import AgentMemoryContext
from memory.tables.buttons import NewButton, new_id
from memory.tables.user_tokens import AskPlace, Connection

log = structlog.get_logger()

DISCONNECT = "connect.disconnect"


async def answer_connect_command(services: Services, command_turn: CommandTurn) -> Reply:
    """The link, or what is granted. Raises `StoreUnavailable`."""
    language, access = command_turn.language, services.access
    if access is None:
        return Reply(texts.say("not-offered", language))
    if command_turn.context.actor_tenant:
        return Reply(texts.say("guest", language))
    if command_turn.opened.degraded:
        means = apologised("memory_away")
        return Reply(command_texts.say("memory-away", language), means=means)
    connection = await access.store.get(_person(command_turn.context))
    if connection and _has_all(connection):
        return await tell_asker(services, command_turn, partial(_shown, services, connection))
    return await _ask(services, access, command_turn)


async def press_disconnect(services: Services, here: PressTurn) -> Reply:
    """Ends what whoever pressed has granted; doing it again changes nothing. Raises
    `StoreUnavailable`."""
    if services.access is not None:
        was_connected = await services.access.store.disconnect(_person(here.context))
        log.info("connect.disconnected", ended=was_connected)
    return Reply(texts.say("disconnected", here.language), forgets=True)


async def _ask(services: Services, access: PersonalAccess, command_turn: CommandTurn) -> Reply:
    context, language, request = (
        command_turn.context,
        command_turn.language,
        command_turn.turn.request,
    )
    in_p2p = command_turn.chat_type == "p2p"
    beside = "" if in_p2p or request.in_thread else context.chat_id
    place = AskPlace(context.chat_id, command_turn.chat_type, language, beside)
    person = _person(context)
    outcome = await ask(services, access, person, command_turn.turn_id, place, DOCUMENTS)
    if outcome == "beside":
        return Reply("", unsaid=True, means=ELSEWHERE)
    return Reply(texts.say("sent-privately" if outcome == "in_p2p" else outcome, language))


def _has_all(connection: Connection) -> bool:
    return connection.granted_ms is not None and set(DOCUMENTS) <= set(connection.scopes)


async def _shown(services: Services, connection: Connection, here: FeatureTurn) -> Reply:
    since = services.at((connection.granted_ms or 0) / 1000)
    text = texts.granted(connection.scopes, since, services.now(), here.language)
    return Reply(text, (_disconnect(here),))


def _disconnect(here: FeatureTurn) -> NewButton:
    payload = {"tool": DISCONNECT, "arguments": {}, "description": ""}
    if here.beside:
        payload["beside"] = here.beside
    return decision(
        texts.say("disconnect", here.language),
        payload,
        "confirm",
        group_id=new_id(),
        chat_type="p2p",
        language=here.language,
        danger=True,
    )


def _person(context: AgentMemoryContext) -> FeishuPerson:
    return FeishuPerson(context.tenant_key, context.actor_id)
