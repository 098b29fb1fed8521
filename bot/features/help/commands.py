"""`/help`, and `/why` the bot answered or stayed silent."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from bot.features.feature import CommandTurn
from bot.features.help import texts
from bot.features.help.capabilities import help_text
from bot.features.help.group_access import set_up_here
from bot.features.help.why_texts import explained
from bot.listening.conversation_store import ChatConversations, PastDecision
from bot.listening.decisions import Reason
from bot.outbox.buttons import Reply, offered
from bot.services import Services

_LATELY_S = 600.0


async def show_help(services: Services, asked: CommandTurn) -> Reply:
    here = await set_up_here(services, asked.chat_type, asked.opened.rules)
    commands = offered(texts.say("command-buttons", asked.language).split(), asked.chat_type)
    return Reply(help_text(here, asked.language), commands)


async def explain(services: Services, asked: CommandTurn) -> Reply:
    """Why the bot answered, or not, as it was decided then."""
    request = asked.turn.request
    conversations = ChatConversations(services.rpc, asked.context)
    decided = await conversations.last_decision(
        root_id=request.root_of_thread or None, message_id=request.quotes or None
    )
    if asked.chat_type == "p2p" and not _explains_p2p(services, asked, decided):
        return Reply(texts.say("always-in-p2p", asked.language))
    if decided is None:
        return Reply(texts.say("nothing-decided", asked.language))
    if decided.reason == Reason.NO_TRIGGER and not decided.cue and await conversations.is_quiet():
        decided = replace(decided, reason=Reason.QUIET)  # a quiet chat has no conversation
    names = services.people.of(asked.context.tenant_key)
    await names.look_up([decided.actor_id])
    at = datetime.fromtimestamp(decided.at_ms / 1000, services.settings.zone)
    window_s = services.settings.followup_window_seconds
    name = names.label(decided.actor_id) if decided.actor_id else ""
    return Reply(explained(decided, name, at, window_s, asked.language))


def _explains_p2p(services: Services, asked: CommandTurn, decided: PastDecision | None) -> bool:
    """In p2p only skipped messages have a decision, so the last one may be long ago."""
    if decided is None or decided.reason != Reason.RATE_LIMITED:
        return False
    quotes = bool(asked.turn.request.quotes)
    return quotes or services.clock() - decided.at_ms / 1000 < _LATELY_S
