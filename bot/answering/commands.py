"""What is answered without a model: a command, one that does not exist, an item's new words."""

from __future__ import annotations

from dataclasses import replace

from bot.answering.question import Turn, language
from bot.features.commands.dispatch import Asked, answer_command
from bot.features.help.unknown import answer_unknown
from bot.features.own_memory.items import Looking, awaited, correct_item
from bot.listening.decisions import Reason
from bot.outbox.buttons import Reply
from bot.services import Services
from bot.text.slash_commands import parse
from memory.models import OpenTurn


async def answer_words(services: Services, turn: Turn, opened: OpenTurn) -> Reply | None:
    """The answer to a command to the bot; None for what is for the model."""
    command, decision = parse(turn.question), turn.heard.decision
    stops = decision.reason is Reason.STOP
    if command and stops:
        command = replace(command, only_when_running=False)  # it ran when that was decided
    if command and (stops or decision.is_outright):
        asked = Asked(
            command,
            turn.context,
            turn.chat_type,
            opened,
            language(services, turn, opened),
            turn.id,
            thread=turn.request.root_of_thread or None,
            quoted=turn.request.quotes or None,
        )
        if reply := await answer_command(services, asked):
            return reply
    if unknown := _unknown(services, turn, opened):
        return Reply(unknown)
    if item := awaited(opened, turn.context.actor_id):
        looking = Looking(turn.context, turn.chat_type, language(services, turn, opened), turn.id)
        return await correct_item(services, looking, item, turn.question)
    return None


def _unknown(services: Services, turn: Turn, opened: OpenTurn) -> str:
    """What is said to a slash word that is no command, where the bot is surely meant."""
    outright = turn.heard.decision.is_outright
    in_own_thread = turn.request.in_thread and turn.heard.decision.reason is Reason.RECENT_FOLLOWUP
    if not turn.question.startswith(("/", "／")) or not (outright or in_own_thread):
        return ""
    return answer_unknown(turn.question, language(services, turn, opened))
