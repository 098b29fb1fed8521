"""Lists the features, puts their hooks together, and answers commands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, TypeVar

from bot.answering.question import Turn, turn_language
from bot.features import commands
from bot.features.calendar.feature import CALENDAR
from bot.features.chat_settings import CHAT_SETTINGS
from bot.features.commands import CHAT_COMMANDS
from bot.features.comments.feature import COMMENTS
from bot.features.connect.feature import CONNECT
from bot.features.digests.feature import DIGESTS
from bot.features.documents import DOCUMENTS
from bot.features.feature import CommandTurn, Feature
from bot.features.files import FILES
from bot.features.help import HELP, answer_unknown, page_commands
from bot.features.history_import.feature import HISTORY_IMPORT
from bot.features.own_memory.feature import OWN_MEMORY
from bot.features.private_answers.feature import PRIVATE_ANSWERS
from bot.features.reminders.feature import REMINDERS
from bot.features.timers import handle_timer, tend_timers
from bot.features.unasked import UNASKED
from bot.features.welcome import WELCOME
from bot.hooks import CardHooks, FeatureJob, Hooks, MissingHook, PageTexts
from bot.listening.conversation_store import ChatConversations
from bot.listening.decisions import Reason
from bot.outbox.buttons import Reply
from bot.queue.jobs import TIMER_TASK
from bot.services import Services
from bot.text.meant_commands import command_meant, is_of_its_state
from bot.text.slash_commands import Command, parse_command
from memory.errors import StoreUnavailable
from memory.models import OpenTurn, apology_outcome

K = TypeVar("K")
V = TypeVar("V")

FEATURES: tuple[Feature, ...] = (
    HELP,
    CHAT_COMMANDS,
    CHAT_SETTINGS,
    HISTORY_IMPORT,
    OWN_MEMORY,
    PRIVATE_ANSWERS,
    CONNECT,
    REMINDERS,
    DIGESTS,
    UNASKED,
    FILES,
    DOCUMENTS,
    CALENDAR,
    COMMENTS,
    WELCOME,
)
COMMANDS = tuple(command for feature in FEATURES for command in feature.commands)
_COMMANDS_BY_NAME = {command.name: command for command in COMMANDS}
TOOLS = tuple(tool for feature in FEATURES for tool in feature.tools)
TIMERS = {kind: fire for feature in FEATURES for kind, fire in feature.timers.items()}


async def answer_words(services: Services, turn: Turn, open_turn: OpenTurn) -> Reply | None:
    """Answers a question that needs no model. Returns None for every other question."""
    if command := _command(services, turn):
        command_turn = CommandTurn(
            turn.context,
            turn.chat_type,
            turn_language(services, turn, open_turn),
            turn.id,
            asked_ms=turn.request.words_ms,
            command=command,
            turn=turn,
            open_turn=open_turn,
            commands=COMMANDS,
        )
        if reply := await answer_command(services, command_turn):
            return reply
    if unknown := _unknown(services, turn, open_turn):
        return Reply(unknown)
    return None


async def answer_command(services: Services, command_turn: CommandTurn) -> Reply | None:
    """Carries out a command. Returns None if the words were no command after all."""
    spec = _COMMANDS_BY_NAME[command_turn.command.name]
    try:
        conversations = ChatConversations(services.rpc, command_turn.context)
        if command_turn.command.only_when_quiet and not await conversations.is_quiet():
            return None
        if spec.personal and not command_turn.context.speaks_for_self:
            return Reply(commands.say("only-yourself", command_turn.language))
        return await spec.run(services, command_turn)
    except StoreUnavailable:
        return Reply(
            commands.say("memory-away", command_turn.language), means=apology_outcome("memory_away")
        )


def _command(services: Services, turn: Turn) -> Command | None:
    """Returns the command in the question, if it is one; in plain words what only the bot itself
    can do (“be quiet here”), and without a model the rest (“summarize what we discussed today”)."""
    command, decision = parse_command(turn.question), turn.heard.decision
    if command is None and (meant := command_meant(turn.question)):
        has_model = services.settings.openai_api_key
        command = None if has_model and not is_of_its_state(meant) else meant
    if command and decision.reason is Reason.STOP:
        return replace(command, only_when_running=False)  # it ran when that was decided
    return command if decision.is_outright else None


def _unknown(services: Services, turn: Turn, open_turn: OpenTurn) -> str:
    """Returns the answer to a slash word that is no command, if the bot is surely addressed."""
    outright = turn.heard.decision.is_outright
    in_own_thread = turn.request.in_thread and turn.heard.decision.reason is Reason.RECENT_FOLLOWUP
    if not turn.question.startswith(("/", "／")) or not (outright or in_own_thread):
        return ""
    return answer_unknown(turn.question, turn_language(services, turn, open_turn))


async def _fire_timer(services: Services, job: FeatureJob) -> None:
    await handle_timer(services, job.lease, TIMERS, job.handle_request)


def hooks_of(features: Sequence[Feature]) -> Hooks:
    """Returns the hooks of the pipeline. Raises `MissingHook`."""
    (follow_up,) = (one.follow_up for one in features if one.follow_up)
    return Hooks(
        gathers={one.name: one.gather for one in features if one.gather},
        checks=_merge(one.checks for one in features),
        answer_command=answer_words,
        follow_up=follow_up,
        after=tuple(one.after for one in features if one.after),
        events=_merge(one.events for one in features),
        jobs=_merge(one.jobs for one in features) | {TIMER_TASK: _fire_timer},
        give_ups=_merge(one.give_ups for one in features),
        tending=(tend_timers, *(tend for one in features for tend in one.tending)),
        cards=_card_hooks(features),
    )


def _card_hooks(features: Sequence[Feature]) -> CardHooks:
    """Returns the hooks of the card actions. Raises `MissingHook`."""
    functions: dict[str, Any] = {
        "presses": _merge(one.presses for one in features),
        "deleting_presses": _merge(one.deleting_presses for one in features),
        **_merge(one.card_hooks for one in features),
    }
    if missing := {one.name for one in fields(CardHooks)} - functions.keys():
        raise MissingHook(f"No feature registers these card hooks: {', '.join(sorted(missing))}.")
    return CardHooks(**functions)


def _merge(parts: Iterable[Mapping[K, V]]) -> dict[K, V]:
    return {key: value for part in parts for key, value in part.items()}


HOOKS = hooks_of(FEATURES)
PAGE_TEXTS = PageTexts(
    commands=partial(page_commands, COMMANDS), **_merge(one.page_texts for one in FEATURES)
)
