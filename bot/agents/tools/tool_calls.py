"""Runs the tool calls of one response and records each one. An expected failure is an outcome that
the model can act on."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Any

import msgspec

from bot.agents.authority.request_words import names_moment
from bot.agents.authority.rules import GUARDED, authorises
from bot.agents.llm.model import Message, Response, call_entry, result_message
from bot.agents.llm.requests import results_in_words
from bot.agents.running_turns import Progress, noting_sources
from bot.agents.tool_types import (
    NO_TOOLS,
    ArgumentsInvalid,
    Tool,
    Toolbox,
    ToolCall,
    ToolFailed,
    ToolOutcome,
    as_error,
)
from bot.agents.tools.confirming import read_only_failure, wait_for_confirmation
from bot.agents.tools.deps import ToolDeps
from bot.text.json_text import dump_json, load_json
from memory.errors import (
    AccessDenied,
    NoteInvalid,
    NoteNotFound,
    StoreError,
    StoreUnavailable,
    WorkingMemoryTooLarge,
)
from memory.tables.timers import TimerPlan
from memory.text import indented_text, storable

_LONGEST_RESULT = 24_000
_NOT_TOLD = "What this gives cannot be told here now. Answer without it."
NOT_KEPT = "It was for that answer alone and is not kept. Call the tool again where it is needed."


@dataclass(frozen=True, slots=True)
class ToolSession:
    """What an agent can do in a turn: its tools, and the turn they work for. `sent_toolbox` are the
    tools that its model is told of; None: all."""

    tools: Toolbox
    deps: ToolDeps
    sent_toolbox: Toolbox | None = None

    @property
    def toolbox(self) -> Toolbox:
        return self.tools if self.sent_toolbox is None else self.sent_toolbox


@dataclass(frozen=True, slots=True)
class ToolCallResult:
    """What a call came to, and the message that tells the model. Unless `was_called`, the model has
    to call something else."""

    message: Message
    outcome: ToolOutcome
    was_called: bool = True


async def perform_calls(
    calls: Sequence[ToolCall], hands: ToolSession | None
) -> list[ToolCallResult]:
    """The results in the order of the calls; neighbours that need not be alone run side by side."""
    if hands is None:
        return [_not_called(call, "there are no tools.") for call in calls]
    results: list[ToolCallResult] = []
    for sequential, group in groupby(calls, lambda call: _runs_alone(call, hands.tools)):
        if sequential:
            results += [await _perform(call, hands) for call in group]
        else:
            results += await _side_by_side([_perform(call, hands) for call in group])
    return results


def read_only_calls(calls: Sequence[ToolCall], hands: ToolSession) -> list[ToolCall]:
    """Those that can be made and change nothing."""
    return [call for call in calls if (tool := _callable(call, hands)) and tool.reads]


async def offer_for_confirmation(calls: Sequence[ToolCall], hands: ToolSession) -> bool:
    """Puts those that can be made and change something before the person who asked, as buttons;
    whether there are any."""
    waiting = len(hands.deps.pending)
    for call in calls:
        tool = _callable(call, hands)
        if tool and not tool.reads and not hands.deps.reads_only:
            with contextlib.suppress(ToolFailed):
                await defer_to_confirmation(
                    tool, _understand_call(call, hands.tools)[1], hands.deps
                )
    return len(hands.deps.pending) > waiting


def _callable(call: ToolCall, hands: ToolSession) -> Tool | None:
    try:
        return _understand_call(call, hands.tools)[0]
    except ArgumentsInvalid:
        return None


def _runs_alone(call: ToolCall, tools: Toolbox) -> bool:
    return call.name in tools and tools[call.name].sequential


async def _side_by_side(
    calls: Sequence[Coroutine[Any, Any, ToolCallResult]],
) -> list[ToolCallResult]:
    """The results of all; when one raises, the others are cancelled."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


async def _perform(call: ToolCall, hands: ToolSession) -> ToolCallResult:
    try:
        tool, arguments = _understand_call(call, hands.tools)
    except ArgumentsInvalid as exc:
        return _not_called(call, str(exc))
    if hands.deps.on_progress:
        await hands.deps.on_progress(Progress(tool=tool.name))
    outcome = await call_and_record(tool, arguments, hands.deps)
    return ToolCallResult(_result_message(call, outcome), outcome)


def _not_called(call: ToolCall, why: str) -> ToolCallResult:
    outcome = ToolOutcome(f"{why} Nothing was done.", ok=False)
    return ToolCallResult(_result_message(call, outcome), outcome, was_called=False)


def _understand_call(call: ToolCall, tools: Toolbox) -> tuple[Tool, dict[str, Any]]:
    """The tool and its arguments. Raises `ArgumentsInvalid`."""
    if call.name not in tools:
        tool_names = ", ".join(tools) or "none"
        raise ArgumentsInvalid(f"there is no tool {call.name!r}; there are: {tool_names}.")
    try:
        parsed_arguments = _object(call.arguments)
    except ValueError as exc:
        raise ArgumentsInvalid("the arguments are not a JSON object.") from exc
    try:
        return tools[call.name], tools[call.name].valid(parsed_arguments)
    except ArgumentsInvalid as exc:
        raise ArgumentsInvalid(f"the arguments do not fit: {exc}.") from exc


def _object(arguments: str) -> dict[str, Any]:
    """The object that a model wrote, also as a text in a text, or as nothing at all."""
    value = load_json(arguments) if arguments.strip() else {}
    if isinstance(value, str):
        value = load_json(value)
    if value is None or isinstance(value, dict):
        return value or {}
    raise ValueError("no object")


def response_message(response: Response) -> Message:
    """A response that calls tools, as it stands before their results in the next request."""
    calls = [
        call_entry(call.id, call.name, _sendable(call.arguments), call.extra)
        for call in response.calls
    ]
    content = response.text or None
    return {"role": "assistant", "content": content, "tool_calls": calls, **response.thoughts}


def results_as_text(
    text: str, calls: Sequence[ToolCall], results: Sequence[ToolCallResult]
) -> tuple[Message, Message]:
    """A response with calls in its text and their results, for a model that has no other form."""
    results_text = results_in_words(
        (call.name, result.message["content"]) for call, result in zip(calls, results, strict=True)
    )
    return {"role": "assistant", "content": text}, results_text


def _sendable(arguments: str) -> str:
    """Endpoints refuse a history whose arguments are no JSON object."""
    try:
        return dump_json(_object(arguments)).decode()
    except ValueError:
        return dump_json({"invalid": arguments}).decode()


def _result_message(call: ToolCall, outcome: ToolOutcome) -> Message:
    """The result as it is stored, too: a model never sees more of it than later turns do."""
    stored_result = as_stored(outcome.result if outcome.ok else as_error(outcome.result))
    text = stored_result if isinstance(stored_result, str) else dump_json(stored_result).decode()
    return result_message(call.id, indented_text(text))


class Toolkit:
    """Puts the two together, again only when the outside has changed.

    `allowed` says by name which of them the agent may use.
    """

    def __init__(
        self, own: Iterable[Tool], *, allowed: Callable[[str], bool] = lambda _: True
    ) -> None:
        self._own = [tool for tool in own if allowed(tool.name)]
        self._allowed = allowed
        self._outside = NO_TOOLS
        self._box = Toolbox(self._own)

    def with_outside(self, outside: Toolbox) -> Toolbox:
        """All of the agent's tools."""
        if outside is not self._outside:
            outside_tools = (outside[name] for name in outside if self._allowed(name))
            self._outside, self._box = outside, Toolbox([*self._own, *outside_tools])
        return self._box


async def call_and_record(tool: Tool, arguments: dict[str, Any], deps: ToolDeps) -> ToolOutcome:
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
        result = outcome.result if tool.is_stored or not outcome.ok else NOT_KEPT
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
        return store_failure_outcome(exc)
    del deps.passages[passages:]
    return ToolOutcome(_NOT_TOLD, ok=outcome.ok)


async def _outcome(tool: Tool, arguments: dict[str, Any], deps: ToolDeps) -> ToolOutcome:
    try:
        value = await _call_tool(tool, arguments, deps)
    except StoreError as exc:
        return store_failure_outcome(exc)
    except ToolFailed as exc:
        return ToolOutcome(str(exc), exc.kind, as_stored(exc.fields), ok=False)
    if isinstance(value, ToolOutcome):
        return replace(value, fields=as_stored(value.fields))
    return ToolOutcome(value)


async def _call_tool(tool: Tool, arguments: dict[str, Any], deps: ToolDeps) -> Any:
    """Calls a tool that reads, or that the asker requested or confirmed. Any other waits for their
    confirmation of exactly this call."""
    if tool.reads:
        return await tool.call(deps, arguments)
    if deps.reads_only:
        raise read_only_failure()
    if not deps.is_confirmed and (deps.exchange or deps.words_of_model):
        target = await _target(tool, arguments, deps)
        if not _is_authorised(tool.name, arguments, target, deps):
            return _defer(tool, arguments, target, deps)
    result = await tool.call(deps, arguments)
    await _note_done(tool.name, deps)
    return result


async def defer_to_confirmation(
    tool: Tool, arguments: dict[str, Any], deps: ToolDeps
) -> ToolOutcome:
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
    asker_words, asked_at = deps.exchange.own_with_quotations, deps.prompt.asked_at
    by_moment = target.at is not None and names_moment(asker_words, target.at, asked_at)
    return authorises(deps.exchange, tool, arguments, target.name, target.text, by_moment=by_moment)


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


def _reminder(plan: TimerPlan, now: datetime) -> _Target:
    at = datetime.fromtimestamp(plan.due_ms / 1000, now.tzinfo)
    return _Target("reminder", plan.content, plan.content, at)


def store_failure_outcome(error: StoreError) -> ToolOutcome:
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
    return _clean_value(msgspec.to_builtins(value, str_keys=True, enc_hook=str))


def _clean_value(value: Any) -> Any:
    match value:
        case str():
            return storable(value)[:_LONGEST_RESULT]
        case dict():
            return {storable(str(key)): _clean_value(item) for key, item in value.items()}
        case list() | tuple():
            return [_clean_value(item) for item in value]
        case float() if not math.isfinite(value):
            return None
        case _:
            return value
