"""Every tool call leaves a record; every expected failure is an outcome the model can act on."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import msgspec

from bot.agents.authority.request_words import names_day
from bot.agents.authority.rules import GUARDED, authorises
from bot.agents.prompts.drawn_on import noting_sources
from bot.agents.tool_types.outcomes import ToolOutcome
from bot.agents.tool_types.tool import Tool, ToolFailed, as_error
from bot.agents.tools.confirming import reads_only, wait_for_confirmation
from bot.agents.tools.deps import ToolDeps
from memory.errors import (
    AccessDenied,
    NoteInvalid,
    NoteNotFound,
    StoreError,
    StoreUnavailable,
    WorkingMemoryTooLarge,
)
from memory.tables.timers import Plan
from memory.text import storable

_LONGEST_RESULT = 24_000
_NOT_TOLD = "What this gives cannot be told here now. Answer without it."
NOT_KEPT = "It was for that answer alone and is not kept. Call the tool again where it is needed."


async def recorded(tool: Tool, arguments: dict[str, Any], deps: ToolDeps) -> ToolOutcome:
    """Calls `tool` and records that in `ToolDeps.calls`, in the order in which calls begin.

    A record is JSON: name, arguments, result, ok, ms (milliseconds). Kind and fields are not in it:
    they would be a second copy of the result, which taking back had to clear too.
    """
    record: dict[str, Any] = {
        "name": tool.name,
        "arguments": as_stored({k: v for k, v in arguments.items() if v is not None}),
        "result": "The call was interrupted.",
        "ok": False,
        "ms": 0,
    }
    deps.calls.append(record)
    start_s = time.perf_counter()
    try:
        outcome = await _tellable(tool, arguments, deps)
        result = outcome.result if tool.kept or not outcome.ok else NOT_KEPT
        record |= {"result": as_stored(result), "ok": outcome.ok}
    finally:
        record["ms"] = round((time.perf_counter() - start_s) * 1000)
    return outcome


async def _tellable(tool: Tool, arguments: dict[str, Any], deps: ToolDeps) -> ToolOutcome:
    """What the call gives, as far as it may be told."""
    passages = len(deps.passages)
    with noting_sources() as sources:
        outcome = await _outcome(tool, arguments, deps)
    try:
        if not sources or deps.may_be_told is None or await deps.may_be_told(sources):
            return outcome
    except StoreError as exc:
        return refused(exc)
    del deps.passages[passages:]
    return ToolOutcome(_NOT_TOLD, ok=outcome.ok)


async def _outcome(tool: Tool, arguments: dict[str, Any], deps: ToolDeps) -> ToolOutcome:
    try:
        value = await _called(tool, arguments, deps)
    except StoreError as exc:
        return refused(exc)
    except ToolFailed as exc:
        return ToolOutcome(str(exc), exc.kind, as_stored(exc.fields), ok=False)
    if isinstance(value, ToolOutcome):
        return replace(value, fields=as_stored(value.fields))
    return ToolOutcome(value)


async def _called(tool: Tool, arguments: dict[str, Any], deps: ToolDeps) -> Any:
    """Calls a tool that reads, or that the asker requested or confirmed. Any other waits for their
    confirmation of exactly this call."""
    if tool.reads:
        return await tool.call(deps, arguments)
    if deps.reads_only:
        raise reads_only()
    if not deps.confirmed and (deps.exchange or deps.words_of_model):
        target = await _target(tool, arguments, deps)
        if not _is_authorised(tool.name, arguments, target, deps):
            return _defer(tool, arguments, target, deps)
    result = await tool.call(deps, arguments)
    await _note_done(tool.name, deps)
    return result


async def hold_up(tool: Tool, arguments: dict[str, Any], deps: ToolDeps) -> ToolOutcome:
    """Defers the call until the asker confirms it with a button. Returns the result to show the
    model. Raises `ToolFailed` for what a card cannot show, and `StoreError`."""
    return _defer(tool, arguments, await _target(tool, arguments, deps), deps)


@dataclass(frozen=True, slots=True)
class _Target:
    """The note, reminder or fact that a call changes: its `kind`, its `name`, its whole `text`.
    `at` is when a reminder comes."""

    kind: str
    name: str
    text: str
    at: datetime | None = None


def _defer(
    tool: Tool, arguments: dict[str, Any], target: _Target | None, deps: ToolDeps
) -> ToolOutcome:
    stored_arguments = as_stored(
        {key: value for key, value in arguments.items() if value is not None}
    )
    about = {target.kind: target.name} if target else {}
    return wait_for_confirmation(tool.name, stored_arguments, deps, about)


def _is_authorised(
    tool: str, arguments: Mapping[str, Any], target: _Target | None, deps: ToolDeps
) -> bool:
    if deps.words_of_model:
        return False
    if tool not in GUARDED:
        return True
    if arguments.get("scope") == "person" and not deps.context.speaks_for_self:
        return True  # the tool itself refuses
    if deps.exchange is None:
        return True
    if target is None:
        return authorises(deps.exchange, tool, arguments)
    asker_words, now = deps.exchange.named, deps.prompt.now
    by_day = target.at is not None and names_day(asker_words, target.at, now)
    return authorises(deps.exchange, tool, arguments, target.name, target.text, by_day=by_day)


async def _note_done(tool: str, deps: ToolDeps) -> None:
    """So that it stays listed when this worker dies and another one ends the turn."""
    if deps.note_done:
        with contextlib.suppress(StoreError):  # it is done, whether that is noted or not
            await deps.note_done(tool)


async def _target(tool: Tool, arguments: dict[str, Any], deps: ToolDeps) -> _Target | None:
    """Returns the item that the arguments of a tool of ours name by id or key, if it exists."""
    if tool.name not in GUARDED:
        return None
    if "reminder_id" in arguments and deps.timers:
        timers = await deps.timers.list(deps.context)
        plan = next((one.plan for one in timers if one.id == arguments["reminder_id"]), None)
        return _reminder(plan, deps.prompt.now) if plan else None
    if tool.name == "forget_fact":
        memory, key = deps.prompt.working_memory, str(arguments["key"])
        values = [facts[key] for facts in (memory.chat, memory.user) if key in facts]
        fact = ", ".join(map(str, values))
        return _Target("fact", fact, f"{key} {fact}") if values else None
    if "note_id" not in arguments:
        return None
    try:
        note = await deps.notes.get(deps.context, str(arguments["note_id"]))
    except (NoteNotFound, NoteInvalid, AccessDenied):
        return None
    return _Target("note", note.title, f"{note.title} {note.body} {' '.join(note.tags)}")


def _reminder(plan: Plan, now: datetime) -> _Target:
    at = datetime.fromtimestamp(plan.due_ms / 1000, now.tzinfo)
    return _Target("reminder", plan.content, plan.content, at)


def refused(error: StoreError) -> ToolOutcome:
    """A failure of the memory; the model is told what happened and what to do now."""
    match error:
        case NoteNotFound():
            kind = "no-such-note"
            sentence = f"{error}. Use list_notes or search_notes to find the right ID."
        case NoteInvalid():
            kind, sentence = "note-does-not-fit", f"{error}. Nothing was changed."
        case AccessDenied():
            kind = "not-theirs"
            sentence = (
                "this memory belongs to another person and only they can use it. "
                "Nothing was read or changed. Say so, and do not try again."
            )
        case WorkingMemoryTooLarge():
            kind = "memory-full"
            sentence = (
                "the working memory is full. Nothing was changed. Remove keys that are no "
                "longer needed (null), or keep the text in a note."
            )
        case StoreUnavailable():
            kind = "memory-away"
            sentence = (
                "the memory does not answer right now. Nothing was changed. Tell the person "
                "that it could not be done, and do not claim otherwise."
            )
        case _:
            kind = "memory-refused"
            sentence = "the memory refused this. Nothing was changed. Tell the person so."
    return ToolOutcome(as_error(sentence), kind, ok=False)


def as_stored(value: Any) -> Any:
    """`value` as JSON that Postgres can keep: no NUL, no lone surrogates, long texts cut."""
    return _cleaned(msgspec.to_builtins(value, str_keys=True, enc_hook=str))


def _cleaned(value: Any) -> Any:
    match value:
        case str():
            return storable(value)[:_LONGEST_RESULT]
        case dict():
            return {storable(str(key)): _cleaned(item) for key, item in value.items()}
        case list() | tuple():
            return [_cleaned(item) for item in value]
        case float() if not math.isfinite(value):
            return None
        case _:
            return value
