"""What a pressed button does in place of the model: a confirmed action is done once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast

from bot.agents.mcp.servers import ActionAlreadyRun, ActionResult, ServerDown
from bot.agents.prompts.prompt import PendingAction, Prompt
from bot.agents.tools.confirming import SHARE_NOTE
from bot.agents.tools.note_outcomes import shared
from bot.agents.tools.note_texts import WORDING
from bot.agents.tools.outcomes import Outcome
from bot.agents.tools.recording import refused
from bot.answering.answering import Answering
from bot.answering.question import Turn, people_of
from bot.features.chat_settings import texts as rule_texts
from bot.features.chat_settings.settings import save_settings
from bot.features.commands import texts
from bot.features.own_memory import items
from bot.features.private_answers.answering import published
from bot.features.reminders import listing
from bot.feishu.events import CardAction
from bot.outbox.buttons import Reply
from bot.services import Services
from bot.text.languages import Language
from memory.errors import StoreError, StoreUnavailable
from memory.kept.buttons import Press
from memory.kept.notes import NoteStore
from memory.kept.proactive import ProactiveStore
from memory.models import OpenTurn, WorkingMemory


def answering_of(press: Press, action: CardAction) -> Answering | None:
    """What takes the place of the model, if anything."""
    match press.kind:
        case "confirm" if press.payload["decision"] == "confirm" and (
            press.payload["tool"] in items.PRESSES
        ):
            return partial(item_pressed, press=press)
        case "confirm" if press.payload["decision"] == "confirm" and (
            press.payload["tool"] in listing.PRESSES
        ):
            return partial(reminder_pressed, press=press)
        case "confirm":
            return partial(decided, press=press)
        case "follow_up" if "form" in press.payload:
            return partial(settings_saved, press=press, values=action.form_value)
        case "follow_up" if press.payload.get("stops") == "proactive":
            return partial(proactive_stopped, press=press)
        case "share":
            return partial(published, press=press)
        case _:
            return None


async def decided(services: Services, turn: Turn, opened: OpenTurn, *, press: Press) -> Reply:
    """A confirmed action is done at most once: after a crash in between it is not done again."""
    language = cast(Language, press.payload["language"])
    if press.payload["decision"] != "confirm":
        return Reply(texts.say("cancelled", language))
    if opened.attempts > 1:
        return Reply(texts.say("interrupted", language))
    action = _action(press)
    if _opens_a_note(action):
        outcome = await _share_note(services, turn, str(action.arguments["note_id"]))
        record = _record(action, outcome.result, ok=outcome.ok)
        return Reply(WORDING.tell(outcome, language), tool_calls=(record,))
    if performed := await _performed_here(services, turn, action, language):
        said, record = performed
        return Reply(said, tool_calls=(record,))
    try:
        result = await _perform_outside(services, action)
    except ActionAlreadyRun:
        return Reply(texts.say("interrupted", language))
    except ServerDown:
        return Reply(texts.say("no-such-action", language))
    record = _record(action, result.text, ok=result.ok)
    return Reply(texts.result(result.text, done=result.ok, language=language), tool_calls=(record,))


def _record(action: PendingAction, result: str, *, ok: bool) -> Mapping[str, Any]:
    return {
        "name": action.tool,
        "arguments": dict(action.arguments),
        "result": result,
        "ok": ok,
    }


async def _performed_here(
    services: Services, turn: Turn, action: PendingAction, language: Language
) -> tuple[str, Mapping[str, Any]] | None:
    """What is said of a call of one of our tools on the memory of whoever pressed, and its record;
    None: it is no tool of ours."""
    prompt = Prompt(
        bot_name=turn.bot.name,
        question=turn.question,
        history=(),
        subject=turn.names.name(turn.context.user_id),
        working_memory=WorkingMemory(),
        now=services.now(),
        people=turn.names.roster(people_of(turn)),
        context=turn.context,
        turn_id=turn.id,
    )
    return await services.manager.perform(action, prompt, language)


def _opens_a_note(action: PendingAction) -> bool:
    return action.tool == SHARE_NOTE and bool(action.arguments.get("shared", True))


async def _perform_outside(services: Services, action: PendingAction) -> ActionResult:
    """What came of the action. Raises `ActionAlreadyRun` and `ServerDown`."""
    if services.perform is None:
        raise ServerDown("No outside servers are configured.")
    return await services.perform(action)


async def _share_note(services: Services, turn: Turn, note_id: str) -> Outcome:
    """Shares a note of whoever pressed with the chat in which they pressed."""
    try:
        note = await NoteStore(services.rpc).share(turn.context, note_id)
    except StoreUnavailable:
        raise
    except StoreError as exc:
        return replace(refused(exc), result=str(exc))
    return shared(note)


async def item_pressed(services: Services, turn: Turn, opened: OpenTurn, *, press: Press) -> Reply:
    """Deleting again after a crash finds nothing to delete, and says so."""
    language = cast(Language, press.payload["language"])
    beside = press.payload.get("beside", "")
    looking = items.Looking(turn.context, turn.chat_type, language, turn.id, beside)
    return await items.press_item(services, looking, press.payload)


async def reminder_pressed(
    services: Services, turn: Turn, opened: OpenTurn, *, press: Press
) -> Reply:
    """Cancelling again after a crash finds nothing to cancel, and says so."""
    language = cast(Language, press.payload["language"])
    looking = items.Looking(turn.context, turn.chat_type, language, turn.id)
    return await listing.press_reminder(services, looking, press.payload)


async def settings_saved(
    services: Services, turn: Turn, opened: OpenTurn, *, press: Press, values: Mapping[str, Any]
) -> Reply:
    """Saving again after a crash finds it saved, and says so."""
    language = cast(Language, press.payload["language"])
    looking = items.Looking(turn.context, turn.chat_type, language, turn.id)
    return await save_settings(services, looking, press.payload["form"], values)


async def proactive_stopped(
    services: Services, turn: Turn, opened: OpenTurn, *, press: Press
) -> Reply:
    """Any member of the group stops what the bot says there unasked."""
    language = cast(Language, press.payload["language"])
    await ProactiveStore(services.rpc).stop(turn.context)
    return Reply(rule_texts.say("proactive-stopped", language))


def _action(press: Press) -> PendingAction:
    return PendingAction(
        id=press.payload["id"],
        tool=press.payload["tool"],
        arguments=press.payload["arguments"],
        description=press.payload["description"],
        actor_id=press.actor_id,
        conversation_id=press.conversation_id,
    )
