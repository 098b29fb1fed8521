"""Answers `/new`, `/quiet`, `/resume` and `/stop`, and holds what all commands share: their texts
and who may change a chat."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime

from bot.features.feature import CommandSpec, CommandTurn, Feature, HelpLine
from bot.features.help import set_up_here
from bot.feishu.errors import FeishuFailure
from bot.feishu.markup import quotable
from bot.outbox.buttons import Reply
from bot.queue.table import stopping_statement
from bot.services import Services
from bot.text import times
from bot.text.languages import Catalogue, Language
from memory.models import MemoryOverview
from memory.scope import AgentMemoryContext, ChatType
from memory.tables.directory import ChatStore
from memory.tables.notes import Note

_VALUE_CHARS = 200
_MESSAGE_CHARS = 120
_MESSAGES_SHOWN = 6
say = Catalogue(__file__).say

_LOOK_UP_S = 5.0


async def start_afresh(services: Services, command_turn: CommandTurn) -> Reply:
    await services.store.start_afresh(command_turn.context)
    return Reply(say("afresh", command_turn.language))


async def quiet_chat(services: Services, command_turn: CommandTurn) -> Reply:
    if command_turn.chat_type == "p2p":
        return Reply(say("quiet-in-p2p", command_turn.language))
    await command_turn.turn.chat.manager.quieten(command_turn.context.chat_id)
    return Reply(say("quiet", command_turn.language))


async def resume_following(services: Services, command_turn: CommandTurn) -> Reply:
    if command_turn.chat_type == "p2p":
        return Reply(say("quiet-in-p2p", command_turn.language))
    await command_turn.turn.chat.manager.resume(command_turn.context.chat_id)
    here = await set_up_here(services, command_turn.chat_type, command_turn.open_turn.rules)
    text_key = "resumed" if here.follows else "resumed-on-mention"
    return Reply(say(text_key, command_turn.language))


async def stop_answers(services: Services, command_turn: CommandTurn) -> Reply | None:
    """Ends the answers to the person, and those about them, that are being written in this chat."""
    context, language = command_turn.context, command_turn.language
    running = await services.store.running_turns(context, turn_id=command_turn.turn_id)
    if not running or services.run_on_queue is None:
        if command_turn.command.only_when_running:
            return None
        return Reply(say("nothing-runs", language))
    for turn_id in running:
        await services.run_on_queue(stopping_statement(turn_id))
    return Reply(say("stopping", language))


def forget_scope_text(tool: str, language: Language) -> str:
    """What `tool` (`forget.thread`, `forget.person`) would forget."""
    return say(f"forget-{_scope(tool)}", language)


def forget_choice_label(tool: str, language: Language) -> str:
    """The button that chooses `tool` of several."""
    return say(f"choose-{_scope(tool)}", language)


def forgotten_text(tool: str, language: Language) -> str:
    return say(f"forgotten-{_scope(tool)}", language)


def _scope(tool: str) -> str:
    return tool.removeprefix("forget.")


def forget_question(choices: Iterable[str], language: Language) -> str:
    """What would be forgotten, before anything is."""
    lines = [f"- {forget_scope_text(tool, language)}" for tool in choices]
    return "\n".join((say("confirm-forget", language), "", *lines))


def memory_overview(
    overview: MemoryOverview,
    messages: Sequence[tuple[str, str]],
    language: Language,
    now: datetime,
) -> str:
    """Counts, and the latest messages as (role, text); days are in the zone of `now`."""
    counts = say(
        "counts-since" if overview.since else "counts",
        language,
        here=overview.messages_here,
        conversations=overview.conversations,
        messages=overview.messages,
        notes=overview.notes,
        day=_day(overview.since, language, now) if overview.since else "",
    )
    with_text = [line for line in messages if line[1].strip()]
    latest = [_line(role, text, language) for role, text in with_text[-_MESSAGES_SHOWN:]]
    parts = [
        f"{say('memory', language)}\n{counts}",
        "\n".join((say("latest-messages", language), *latest)) if latest else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _line(role: str, text: str, language: Language) -> str:
    key = "line-by-me" if role == "assistant" else "line-by-you"
    return f"- {say(key, language, text=quotable(text, _MESSAGE_CHARS))}"


def note_list(all_notes: Sequence[Note], language: Language, *, in_group: bool = False) -> str:
    """Titles and tags, numbered in order of creation."""
    lines = [
        f"{number}. “{quotable(note.title, _VALUE_CHARS)}”"
        + "".join(f" #{quotable(tag, 40)}" for tag in note.tags)
        for number, note in enumerate(all_notes, 1)
    ]
    if not lines:
        return say("no-notes-here" if in_group else "no-notes", language)
    return "\n".join((say("notes", language, n=len(lines)), "", *lines))


def _day(at: str, language: Language, now: datetime) -> str:
    return times.day_text(datetime.fromisoformat(at).astimezone(now.tzinfo), language, now=now)


async def learn_managers(
    services: Services, context: AgentMemoryContext, chat_type: ChatType
) -> bool:
    """Stores who manages the chat as Feishu says now; False where it does not say. In p2p that is
    the person themselves."""
    managers: tuple[str, ...] = (context.actor_id,)
    if chat_type != "p2p":
        try:
            async with asyncio.timeout(_LOOK_UP_S):
                managers = (await services.feishu.chat_info(context.chat_id)).managers
        except (TimeoutError, FeishuFailure):
            return False
    await ChatStore(services.rpc).save_managers(context.tenant_key, context.chat_id, managers)
    return bool(managers)


def explain_refusal(language: Language, *, managers_known: bool = True) -> str:
    return say("refused" if managers_known else "unreadable", language)


CHAT_COMMANDS = Feature(
    name="commands",
    commands=(
        CommandSpec(
            words=("new", "新对话"),
            run=start_afresh,
            help=(
                HelpLine(
                    "`/new`: start over in this thread; I'll ignore what was said before",
                    "`/新对话`：在这个话题里重新开始，不再参考之前的内容",
                ),
            ),
            personal=True,
        ),
        CommandSpec(
            words=("quiet", "安静"),
            run=quiet_chat,
            help=(
                HelpLine(
                    "`/quiet`: mute me in this group, so that I only answer mentions",
                    "`/安静`：静音，之后只在有人 @我 时回答",
                    lambda here: here.follows,
                ),
            ),
        ),
        CommandSpec(
            words=("resume", "继续"),
            run=resume_following,
            help=(
                HelpLine(
                    "`/resume`: unmute me",
                    "`/继续`：取消静音",
                    lambda here: here.follows,
                ),
            ),
        ),
        CommandSpec(
            words=("stop", "停止", "停"),
            run=stop_answers,
            help=(
                HelpLine(
                    "`/stop`: stop the answer I'm writing for you, just like the **Stop** "
                    "button on its card",
                    "`/停止`：停止我正在为你写的回答，作用与卡片上的**停止**按钮相同",
                ),
            ),
        ),
    ),
)
