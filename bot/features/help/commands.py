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


async def show_help(services: Services, command_turn: CommandTurn) -> Reply:
    here = await set_up_here(services, command_turn.chat_type, command_turn.opened.rules)
    commands = offered(
        texts.say("command-buttons", command_turn.language).split(), command_turn.chat_type
    )
    return Reply(help_text(here, command_turn.language), commands)


async def explain(services: Services, command_turn: CommandTurn) -> Reply:
    """Why the bot answered, or not, as it was decided then."""
    request = command_turn.turn.request
    conversations = ChatConversations(services.rpc, command_turn.context)
    decision = await conversations.last_decision(
        root_id=request.root_of_thread or None, message_id=request.quotes or None
    )
    if command_turn.chat_type == "p2p" and not _explains_p2p(services, command_turn, decision):
        return Reply(texts.say("always-in-p2p", command_turn.language))
    if decision is None:
        return Reply(texts.say("nothing-decided", command_turn.language))
    if decision.reason == Reason.NO_TRIGGER and not decision.cue and await conversations.is_quiet():
        decision = replace(decision, reason=Reason.QUIET)  # a quiet chat has no conversation
    names = services.people.of(command_turn.context.tenant_key)
    await names.look_up([decision.actor_id])
    at = datetime.fromtimestamp(decision.at_ms / 1000, services.settings.zone)
    window_s = services.settings.followup_window_seconds
    name = names.label(decision.actor_id) if decision.actor_id else ""
    return Reply(explained(decision, name, at, window_s, command_turn.language))


def _explains_p2p(
    services: Services, command_turn: CommandTurn, decision: PastDecision | None
) -> bool:
    """In p2p only skipped messages have a decision, so the last one may be long ago."""
    if decision is None or decision.reason != Reason.RATE_LIMITED:
        return False
    quotes = bool(command_turn.turn.request.quotes)
    return quotes or services.clock() - decision.at_ms / 1000 < _LATELY_S
