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


async def answer_connect_command(services: Services, asked: CommandTurn) -> Reply:
    """The link, or what is granted. Raises `StoreUnavailable`."""
    language, access = asked.language, services.access
    if access is None:
        return Reply(texts.say("not-offered", language))
    if asked.context.actor_tenant:
        return Reply(texts.say("guest", language))
    if asked.opened.degraded:
        means = apologised("memory_away")
        return Reply(command_texts.say("memory-away", language), means=means)
    found = await access.store.get(_person(asked.context))
    if found and _has_all(found):
        return await tell_asker(services, asked, partial(_shown, services, found))
    return await _ask(services, access, asked)


async def press_disconnect(services: Services, here: PressTurn) -> Reply:
    """Ends what whoever pressed has granted; doing it again changes nothing. Raises
    `StoreUnavailable`."""
    if services.access is not None:
        ended = await services.access.store.disconnect(_person(here.context))
        log.info("connect.disconnected", ended=ended)
    return Reply(texts.say("disconnected", here.language), forgets=True)


async def _ask(services: Services, access: PersonalAccess, asked: CommandTurn) -> Reply:
    context, language, request = asked.context, asked.language, asked.turn.request
    in_p2p = asked.chat_type == "p2p"
    beside = "" if in_p2p or request.in_thread else context.chat_id
    place = AskPlace(context.chat_id, asked.chat_type, language, beside)
    person = _person(context)
    outcome = await ask(services, access, person, asked.turn_id, place, DOCUMENTS)
    if outcome == "beside":
        return Reply("", unsaid=True, means=ELSEWHERE)
    return Reply(texts.say("sent-privately" if outcome == "in_p2p" else outcome, language))


def _has_all(found: Connection) -> bool:
    return found.granted_ms is not None and set(DOCUMENTS) <= set(found.scopes)


async def _shown(services: Services, found: Connection, here: FeatureTurn) -> Reply:
    since = services.at((found.granted_ms or 0) / 1000)
    text = texts.granted(found.scopes, since, services.now(), here.language)
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
