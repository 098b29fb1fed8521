"""Answers `/help` and `/why`, and finds out what Feishu lets the bot hear in a group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from bot.features.feature import CommandTurn, Feature
from bot.features.help import texts
from bot.features.help.texts import SetUp, decision_explanation, help_text, say, set_up
from bot.feishu.denials import lacks_scope
from bot.feishu.manifest import GROUP_MESSAGES
from bot.listening.conversation_store import ChatConversations, PastDecision
from bot.listening.decisions import Reason
from bot.outbox.buttons import Reply, offered_buttons
from bot.services import Services
from bot.text.languages import Language
from bot.text.slash_commands import CommandName
from memory.scope import ChatType

_LATELY_S = 600.0


async def show_help(services: Services, command_turn: CommandTurn) -> Reply:
    here = await set_up_here(services, command_turn.chat_type, command_turn.opened.rules)
    commands = offered_buttons(
        texts.say("command-buttons", command_turn.language).split(), command_turn.chat_type
    )
    return Reply(help_text(here, command_turn.language), commands)


async def explain_decision(services: Services, command_turn: CommandTurn) -> Reply:
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
    return Reply(decision_explanation(decision, name, at, window_s, command_turn.language))


def _explains_p2p(
    services: Services, command_turn: CommandTurn, decision: PastDecision | None
) -> bool:
    """In p2p only skipped messages have a decision, so the last one may be long ago."""
    if decision is None or decision.reason != Reason.RATE_LIMITED:
        return False
    quotes = bool(command_turn.turn.request.quotes)
    return quotes or services.clock() - decision.at_ms / 1000 < _LATELY_S


async def hears_all(services: Services, chat_type: ChatType) -> bool:
    """Whether all that is said in such a chat reaches the bot, as far as Feishu says."""
    return chat_type == "p2p" or not await lacks_scope(
        services.feishu, services.denials, GROUP_MESSAGES
    )


async def set_up_here(services: Services, chat_type: ChatType, rules: Mapping[str, Any]) -> SetUp:
    """What the bot can do there; `rules` is a row of `get_chat_rules`."""
    hears = await hears_all(services, chat_type)
    return set_up(services.settings, chat_type, rules, hears=hears)


async def with_limits(
    services: Services, chat_type: ChatType, text: str, language: Language
) -> str:
    """`text`, with what the bot cannot hear there below it."""
    if await hears_all(services, chat_type):
        return text
    return f"{text}\n\n{say('mentions-only', language)}"


HELP = Feature(
    name="help",
    commands={CommandName.HELP: show_help, CommandName.WHY: explain_decision},
)
