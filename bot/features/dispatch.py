"""What is answered: a command, one that does not exist, else the model."""

from __future__ import annotations

from dataclasses import replace

from bot.agents.offline.commands_meant import command_meant
from bot.answering.answering import answer as answer_by_model
from bot.answering.question import Turn, language
from bot.features.commands import texts
from bot.features.feature import CommandTurn
from bot.features.help.unknown import answer_unknown
from bot.features.registry import COMMAND_FUNCTIONS, PERSONAL_COMMANDS
from bot.listening.conversation_store import ChatConversations
from bot.listening.decisions import Reason
from bot.outbox.buttons import Reply
from bot.services import Services
from bot.text.slash_commands import Command, parse
from memory.errors import StoreUnavailable
from memory.models import OpenTurn
from memory.outcomes import ANSWERED, BY_COMMAND, apologised


async def answer(services: Services, turn: Turn, open_turn: OpenTurn) -> Reply:
    """A command to the bot is carried out; everything else is for the model."""
    is_limited = turn.heard.decision.reason is Reason.RATE_LIMITED
    reply = None if is_limited else await answer_words(services, turn, open_turn)
    if reply is None:
        return await answer_by_model(services, turn, open_turn)
    return replace(reply, means=BY_COMMAND) if reply.means == ANSWERED else reply


async def answer_words(services: Services, turn: Turn, open_turn: OpenTurn) -> Reply | None:
    """What needs no model; None for everything else."""
    if command := _command(services, turn):
        command_turn = CommandTurn(
            turn.context,
            turn.chat_type,
            language(services, turn, open_turn),
            turn.id,
            asked_ms=turn.request.create_time_ms,
            command=command,
            turn=turn,
            opened=open_turn,
        )
        if reply := await answer_command(services, command_turn):
            return reply
    if unknown := _unknown(services, turn, open_turn):
        return Reply(unknown)
    return None


async def answer_command(services: Services, command_turn: CommandTurn) -> Reply | None:
    """Does what was asked; None when the words were no command after all."""
    name = command_turn.command.name
    try:
        conversations = ChatConversations(services.rpc, command_turn.context)
        if command_turn.command.only_when_quiet and not await conversations.is_quiet():
            return None
        if name in PERSONAL_COMMANDS and not command_turn.context.speaks_for_self:
            return Reply(texts.say("only-yourself", command_turn.language))
        return await COMMAND_FUNCTIONS[name](services, command_turn)
    except StoreUnavailable:
        return Reply(
            texts.say("memory-away", command_turn.language), means=apologised("memory_away")
        )


def _command(services: Services, turn: Turn) -> Command | None:
    """The command that the turn asks of the bot, if it does; without a model also in plain words
    (“summarize what we discussed today”)."""
    command, decision = parse(turn.question), turn.heard.decision
    if command is None and not services.settings.openai_api_key:
        command = command_meant(turn.question)
    if command and decision.reason is Reason.STOP:
        return replace(command, only_when_running=False)  # it ran when that was decided
    return command if decision.is_outright else None


def _unknown(services: Services, turn: Turn, open_turn: OpenTurn) -> str:
    """What is said to a slash word that is no command, where the bot is surely meant."""
    outright = turn.heard.decision.is_outright
    in_own_thread = turn.request.in_thread and turn.heard.decision.reason is Reason.RECENT_FOLLOWUP
    if not turn.question.startswith(("/", "／")) or not (outright or in_own_thread):
        return ""
    return answer_unknown(turn.question, language(services, turn, open_turn))
