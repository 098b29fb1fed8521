"""What a pressed button does in place of the model: a confirmed action is done once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, cast

from bot.agents.mcp.servers import ActionAlreadyRun, ActionResult, ServerDown
from bot.agents.prompts.prompt import PendingAction, Prompt
from bot.agents.tool_types.outcomes import ToolOutcome
from bot.agents.tools.confirming import SHARE_NOTE
from bot.agents.tools.note_outcomes import of_closed_document, shared
from bot.agents.tools.note_texts import WORDING
from bot.agents.tools.recording import refused
from bot.answering.answering import Answering
from bot.answering.documents import asker
from bot.answering.documents_behind import DocumentsBehind
from bot.answering.question import Turn, language, people_of
from bot.features.commands import texts
from bot.features.feature import PressTurn
from bot.features.registry import PRESSES, press_name
from bot.feishu.events import CardAction
from bot.outbox.buttons import Reply
from bot.services import Services
from bot.text.languages import Language
from memory.errors import StoreError, StoreUnavailable
from memory.models import OpenTurn, WorkingMemory
from memory.scope import AgentMemoryContext
from memory.tables.buttons import Press
from memory.tables.notes import NoteStore, note_source


def answering_of(press: Press, action: CardAction) -> Answering | None:
    """What takes the place of the model, if anything."""
    if press_name(press) in PRESSES:
        return partial(pressed, press=press, values=action.form_value)
    return partial(decided, press=press) if press.kind == "confirm" else None


async def pressed(
    services: Services,
    turn: Turn,
    open_turn: OpenTurn,
    *,
    press: Press,
    values: Mapping[str, Any] = MappingProxyType({}),
) -> Reply:
    """What a feature's button does. It can be repeated after a crash."""
    reply_language = press.payload.get("language") or language(services, turn, open_turn)
    beside = press.payload.get("beside", "")
    press_turn = PressTurn(
        turn.context,
        turn.chat_type,
        reply_language,
        turn.id,
        beside,
        press=press,
        values=values,
        attempts=open_turn.attempts,
        pressed_ms=turn.received_ms,
        asked_ms=turn.request.create_time_ms,
    )
    return await PRESSES[press_name(press)](services, press_turn)


async def decided(services: Services, turn: Turn, open_turn: OpenTurn, *, press: Press) -> Reply:
    """A confirmed action is done at most once: after a crash in between it is not done again."""
    reply_language = cast(Language, press.payload["language"])
    if press.payload["decision"] != "confirm":
        return Reply(texts.say("cancelled", reply_language))
    if open_turn.attempts > 1:
        return Reply(texts.say("interrupted", reply_language))
    action = _action(press)
    if not await may_be_told(services, turn.context, press):
        return Reply(WORDING.tell(of_closed_document(), reply_language))
    if _opens_a_note(action):
        outcome = await _share_note(services, turn, str(action.arguments["note_id"]))
        record = _record(action, outcome.result, ok=outcome.ok)
        return Reply(WORDING.tell(outcome, reply_language), tool_calls=(record,))
    if performance := await _performed_here(services, turn, action, reply_language):
        outcome_text, record = performance
        return Reply(outcome_text, tool_calls=(record,))
    try:
        result = await _perform_outside(services, action)
    except ActionAlreadyRun:
        return Reply(texts.say("interrupted", reply_language))
    except ServerDown:
        return Reply(texts.say("no-such-action", reply_language))
    record = _record(action, result.text, ok=result.ok)
    return Reply(
        texts.result(result.text, succeeded=result.ok, language=reply_language),
        tool_calls=(record,),
    )


async def may_be_told(services: Services, here: AgentMemoryContext, press: Press) -> bool:
    """Whether everybody can open the documents that the answer with the button tells of: what it
    does tells of them, too. Raises `StoreError`."""
    if services.access is None:
        return True
    behind = DocumentsBehind(services, here, asker(here))
    return await behind.may_be_told([press.turn_id])


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
        asked=services.asked_at(action.asked_ms),
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


async def _share_note(services: Services, turn: Turn, note_id: str) -> ToolOutcome:
    """Shares a note of whoever pressed with the chat in which they pressed, if everybody there can
    open the documents that it tells of."""
    behind = DocumentsBehind(services, turn.context, asker(turn.context))
    if services.access and not await behind.may_be_told([note_source(note_id)]):
        return of_closed_document()
    try:
        note = await NoteStore(services.rpc).share(turn.context, note_id)
    except StoreUnavailable:
        raise
    except StoreError as exc:
        return replace(refused(exc), result=str(exc))
    return shared(note)


def _action(press: Press) -> PendingAction:
    return PendingAction(
        id=press.payload["id"],
        tool=press.payload["tool"],
        arguments=press.payload["arguments"],
        description=press.payload["description"],
        actor_id=press.actor_id,
        conversation_id=press.conversation_id,
        asked_ms=press.payload.get("asked_ms", 0),
    )
