"""What a command does and answers. The texts are in `bot.features.commands.texts`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from bot.agents.tools.note_outcomes import listed
from bot.conversation import ConversationManager
from bot.features.chat_settings.group_access import hears_all
from bot.features.chat_settings.settings import answer_rule_command
from bot.features.commands import texts
from bot.features.digests.schedules import answer_digest
from bot.features.help import texts as help_texts
from bot.features.help.capabilities import SetUp, help_text, set_up
from bot.features.help.why_texts import explained
from bot.features.own_memory import texts as item_texts
from bot.features.own_memory.items import Looking, show_items
from bot.features.reminders.listing import show_reminders
from bot.feishu import markup
from bot.listening.conversation_store import ChatConversations, PastDecision
from bot.listening.decisions import Reason
from bot.mentions import from_card
from bot.outbox import texts as outbox_texts
from bot.outbox.buttons import Decision, Reply, decision, offered
from bot.queue.table import stopping
from bot.services import Services
from bot.text.languages import Language
from bot.text.slash_commands import Command, CommandName, means_everything, means_thread
from memory.errors import StoreUnavailable
from memory.kept.buttons import NewButton, new_id
from memory.kept.notes import NoteStore
from memory.models import OpenTurn, StoredMessage
from memory.outcomes import apologised
from memory.scope import AgentMemoryContext, ChatType

FORGET_THREAD = "forget.thread"
FORGET_PERSON = "forget.person"
_NOTES_SHOWN = 30
_PERSONAL = frozenset({CommandName.MEMORY, CommandName.FORGET, CommandName.NOTES, CommandName.NEW})

_LATELY_S = 600.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A command and the turn it came with."""

    command: Command
    context: AgentMemoryContext
    chat_type: ChatType
    opened: OpenTurn
    language: Language
    turn_id: str
    thread: str | None = None  # its root, where the command stands in one
    quoted: str | None = None  # the message that it quotes, outside of threads

    @property
    def looking(self) -> Looking:
        return Looking(self.context, self.chat_type, self.language, self.turn_id)


async def answer_command(services: Services, asked: Asked) -> Reply | None:
    """Does what was asked; None when the words were no command after all."""
    name = asked.command.name
    try:
        if asked.command.only_when_quiet and not await _is_quiet(services, asked):
            return None
        if name in _PERSONAL and not asked.context.speaks_for_self:
            return Reply(texts.say("only-yourself", asked.language))
        return await _ANSWERS[name](services, asked)
    except StoreUnavailable:
        return Reply(texts.say("memory-away", asked.language), means=apologised("memory_away"))


async def _help(services: Services, asked: Asked) -> Reply:
    commands = offered(texts.command_buttons(asked.language), asked.chat_type)
    here = await _here(services, asked)
    return Reply(help_text(here, asked.language), commands)


async def _here(services: Services, asked: Asked) -> SetUp:
    hears = await hears_all(services, asked.chat_type)
    return set_up(services.settings, asked.chat_type, asked.opened.rules, hears=hears)


async def _new(services: Services, asked: Asked) -> Reply:
    await services.store.start_afresh(asked.context)
    return Reply(texts.say("afresh", asked.language))


async def _memory(services: Services, asked: Asked) -> Reply:
    """In p2p; in a group nothing of it is shown, but to the person alone."""
    if asked.opened.degraded:
        return Reply(texts.say("memory-away", asked.language), means=apologised("memory_away"))
    if asked.chat_type != "p2p":
        return Reply(item_texts.say("sent-privately", asked.language), in_private=True)
    overview = await services.store.overview(asked.context)
    said = [(one.role, _spoken(services, asked, one)) for one in asked.opened.history[:-1]]
    shown = await show_items(services, asked.looking)
    told = texts.memory(overview, said, asked.language, services.settings.zone)
    return replace(shown, text=f"{told}\n\n{shown.text}")


async def _notes(services: Services, asked: Asked) -> Reply:
    notes = await NoteStore(services.rpc).list(asked.context, limit=_NOTES_SHOWN)
    found = listed(notes, asked.context.actor_id).result
    # as if the model had listed them: it is asked about “the first note” next
    call = {"name": "list_notes", "arguments": {}, "result": found, "ok": True, "ms": 0}
    text = texts.notes(notes, asked.language, in_group=asked.chat_type != "p2p")
    return Reply(text, tool_calls=(call,) if notes else ())


async def _forget(services: Services, asked: Asked) -> Reply:
    command, language = asked.command, asked.language
    if asked.opened.degraded:  # a card that is spooled has no buttons
        return Reply(texts.say("memory-away", language), means=apologised("memory_away"))
    if means_everything(command):
        choices = {FORGET_PERSON: outbox_texts.say("confirm", language)}
    elif means_thread(command):
        choices = {FORGET_THREAD: outbox_texts.say("confirm", language)}
    else:
        choices = {one: texts.choose(one, language) for one in (FORGET_THREAD, FORGET_PERSON)}
    return Reply(texts.forget(choices, language), _choices(asked, choices))


def _choices(asked: Asked, choices: Mapping[str, str]) -> tuple[NewButton, ...]:
    """One button per choice and one to cancel; pressing one uses up all."""
    group = new_id()

    def button(tool: str, text: str, choice: Decision) -> NewButton:
        payload = {
            "tool": tool,
            "arguments": {},
            "description": texts.forgets(tool, asked.language),
        }
        return decision(
            text,
            payload,
            choice,
            group_id=group,
            chat_type=asked.chat_type,
            language=asked.language,
            danger=tool == FORGET_PERSON and choice == "confirm",
        )

    first = next(iter(choices))
    confirming = (button(tool, text, "confirm") for tool, text in choices.items())
    return (*confirming, button(first, outbox_texts.say("cancel", asked.language), "cancel"))


async def _quiet(services: Services, asked: Asked) -> Reply:
    if asked.chat_type == "p2p":
        return Reply(texts.say("quiet-in-p2p", asked.language))
    await _conversations(services, asked).quieten(asked.context.chat_id)
    return Reply(texts.say("quiet", asked.language))


async def _resume(services: Services, asked: Asked) -> Reply:
    if asked.chat_type == "p2p":
        return Reply(texts.say("quiet-in-p2p", asked.language))
    await _conversations(services, asked).resume(asked.context.chat_id)
    here = await _here(services, asked)
    return Reply(texts.say("resumed" if here.follows else "resumed-on-mention", asked.language))


async def _stop(services: Services, asked: Asked) -> Reply | None:
    """Ends the answers to the person, and those about them, that are being written in this chat."""
    context, language = asked.context, asked.language
    running = await services.store.running_turns(context, turn_id=asked.turn_id)
    if not running or services.run_on_queue is None:
        if asked.command.only_when_running:
            return None
        return Reply(texts.say("nothing-runs", language))
    for turn_id in running:
        await services.run_on_queue(stopping(turn_id))
    return Reply(texts.say("stopping", language))


async def _rules(services: Services, asked: Asked) -> Reply:
    return await answer_rule_command(services, asked.command, asked.looking)


async def _reminders(services: Services, asked: Asked) -> Reply:
    return await show_reminders(services, asked.looking)


async def _why(services: Services, asked: Asked) -> Reply:
    decided = await ChatConversations(services.rpc, asked.context).last_decision(
        root_id=asked.thread, message_id=asked.quoted
    )
    if asked.chat_type == "p2p" and not _explains_p2p(services, asked, decided):
        return Reply(help_texts.say("always-in-p2p", asked.language))
    if decided is None:
        return Reply(help_texts.say("nothing-decided", asked.language))
    if decided.reason == Reason.NO_TRIGGER and not decided.cue and await _is_quiet(services, asked):
        decided = replace(decided, reason=Reason.QUIET)  # a quiet chat has no conversation
    names = services.people.of(asked.context.tenant_key)
    await names.look_up([decided.actor_id])
    at = datetime.fromtimestamp(decided.at_ms / 1000, services.settings.zone)
    window_s = services.settings.followup_window_seconds
    name = names.label(decided.actor_id) if decided.actor_id else ""
    return Reply(explained(decided, name, at, window_s, asked.language))


def _explains_p2p(services: Services, asked: Asked, decided: PastDecision | None) -> bool:
    """In p2p only skipped messages have a decision, so the last one may be long ago."""
    if decided is None or decided.reason != Reason.RATE_LIMITED:
        return False
    return bool(asked.quoted) or services.clock() - decided.at_ms / 1000 < _LATELY_S


async def _digest(services: Services, asked: Asked) -> Reply:
    return await answer_digest(services, asked.looking, asked.command.argument)


async def _is_quiet(services: Services, asked: Asked) -> bool:
    chat = {"p_chat_id": asked.context.chat_id}
    return bool(await services.rpc.call("chat_is_quiet", chat, asked.context))


def _conversations(services: Services, asked: Asked) -> ConversationManager:
    store = ChatConversations(services.rpc, asked.context)
    return ConversationManager(store, clock=lambda: int(services.clock() * 1000))


def _spoken(services: Services, asked: Asked, message: StoredMessage) -> str:
    if message.role == "user":
        return message.content
    known = services.people.of(asked.context.tenant_key).known
    return from_card(message.content, known, unescape=markup.unescape)


_ANSWERS: Mapping[CommandName, Callable[[Services, Asked], Awaitable[Reply | None]]] = {
    CommandName.HELP: _help,
    CommandName.NEW: _new,
    CommandName.MEMORY: _memory,
    CommandName.FORGET: _forget,
    CommandName.DIGEST: _digest,
    CommandName.QUIET: _quiet,
    CommandName.RESUME: _resume,
    CommandName.NOTES: _notes,
    CommandName.MODE: _rules,
    CommandName.LANGUAGE: _rules,
    CommandName.INSTRUCTIONS: _rules,
    CommandName.PROACTIVE: _rules,
    CommandName.SETTINGS: _rules,
    CommandName.REMINDERS: _reminders,
    CommandName.STOP: _stop,
    CommandName.WHY: _why,
}
