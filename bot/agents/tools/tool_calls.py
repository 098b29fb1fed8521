"""What a model calls for is done: the calls of one response, and their results as messages."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from bot.agents.llm.model import Message, Response, called, returned
from bot.agents.llm.request_messages import results_in_words
from bot.agents.progress import Progress
from bot.agents.tool_types.outcomes import ToolOutcome
from bot.agents.tool_types.tool import (
    ArgumentsInvalid,
    Tool,
    Toolbox,
    ToolCall,
    ToolFailed,
    as_error,
)
from bot.agents.tools.deps import ToolDeps
from bot.agents.tools.recording import as_stored, hold_up, recorded
from bot.text.lenient_json import dumps, loads
from memory.foreign_text import continued


@dataclass(frozen=True, slots=True)
class Hands:
    """What an agent can do in a turn: its tools, and the turn they work for. `sent` are the tools
    that its model is told of; None: all."""

    tools: Toolbox
    deps: ToolDeps
    sent: Toolbox | None = None

    @property
    def offered(self) -> Toolbox:
        return self.tools if self.sent is None else self.sent


@dataclass(frozen=True, slots=True)
class Result:
    """What a call came to, and the message that tells the model; not `called`: the model has to
    call something else."""

    message: Message
    outcome: ToolOutcome
    called: bool = True


async def performed(calls: Sequence[ToolCall], hands: Hands | None) -> list[Result]:
    """The results in the order of the calls; neighbours that need not be alone run side by side."""
    if hands is None:
        return [_not_called(call, "there are no tools.") for call in calls]
    results: list[Result] = []
    for sequential, group in groupby(calls, lambda call: _runs_alone(call, hands.tools)):
        if sequential:
            results += [await _perform(call, hands) for call in group]
        else:
            results += await _side_by_side([_perform(call, hands) for call in group])
    return results


def readable(calls: Sequence[ToolCall], hands: Hands) -> list[ToolCall]:
    """Those that can be made and change nothing."""
    return [call for call in calls if (tool := _callable(call, hands)) and tool.reads]


async def offered(calls: Sequence[ToolCall], hands: Hands) -> bool:
    """Puts those that can be made and change something before the person who asked, as buttons;
    whether there are any."""
    waiting = len(hands.deps.pending)
    for call in calls:
        tool = _callable(call, hands)
        if tool and not tool.reads and not hands.deps.reads_only:
            with contextlib.suppress(ToolFailed):
                await hold_up(tool, _understood(call, hands.tools)[1], hands.deps)
    return len(hands.deps.pending) > waiting


def _callable(call: ToolCall, hands: Hands) -> Tool | None:
    try:
        return _understood(call, hands.tools)[0]
    except ArgumentsInvalid:
        return None


def _runs_alone(call: ToolCall, tools: Toolbox) -> bool:
    return call.name in tools and tools[call.name].sequential


async def _side_by_side(calls: Sequence[Coroutine[Any, Any, Result]]) -> list[Result]:
    """The results of all; when one raises, the others are cancelled."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


async def _perform(call: ToolCall, hands: Hands) -> Result:
    try:
        tool, arguments = _understood(call, hands.tools)
    except ArgumentsInvalid as exc:
        return _not_called(call, str(exc))
    if hands.deps.on_progress:
        await hands.deps.on_progress(Progress(tool=tool.name))
    outcome = await recorded(tool, arguments, hands.deps)
    return Result(_told(call, outcome), outcome)


def _not_called(call: ToolCall, why: str) -> Result:
    outcome = ToolOutcome(f"{why} Nothing was done.", ok=False)
    return Result(_told(call, outcome), outcome, called=False)


def _understood(call: ToolCall, tools: Toolbox) -> tuple[Tool, dict[str, Any]]:
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
    value = loads(arguments) if arguments.strip() else {}
    if isinstance(value, str):
        value = loads(value)
    if value is None or isinstance(value, dict):
        return value or {}
    raise ValueError("no object")


def as_message(response: Response) -> Message:
    """A response that calls tools, as it stands before their results in the next request."""
    calls = [
        called(call.id, call.name, _sendable(call.arguments), call.extra) for call in response.calls
    ]
    content = response.text or None
    return {"role": "assistant", "content": content, "tool_calls": calls, **response.thoughts}


def as_text(
    text: str, calls: Sequence[ToolCall], results: Sequence[Result]
) -> tuple[Message, Message]:
    """A response with calls in its text and their results, for a model that has no other form."""
    results_text = results_in_words(
        (call.name, result.message["content"]) for call, result in zip(calls, results, strict=True)
    )
    return {"role": "assistant", "content": text}, results_text


def _sendable(arguments: str) -> str:
    """Endpoints refuse a history whose arguments are no JSON object."""
    try:
        return dumps(_object(arguments)).decode()
    except ValueError:
        return dumps({"invalid": arguments}).decode()


def _told(call: ToolCall, outcome: ToolOutcome) -> Message:
    """The result as it is stored, too: a model never sees more of it than later turns do."""
    stored_result = as_stored(outcome.result if outcome.ok else as_error(outcome.result))
    text = stored_result if isinstance(stored_result, str) else dumps(stored_result).decode()
    return returned(call.id, continued(text))
