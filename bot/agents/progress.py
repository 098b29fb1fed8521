"""How far an answer is, while the model writes it; what a reasoning model thinks is no part of it.

Endpoints mark thoughts as parts of their own, or put them in `<think>` tags before the answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import (
    AgentStreamEvent,
    FunctionToolCallEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)

from bot.agents.tool_context import without_context

_OPEN, _CLOSE = "<think>", "</think>"


@dataclass(frozen=True, slots=True)
class Progress:
    """The whole text so far, or the name of the tool that runs; neither while nothing is said."""

    text: str = ""
    tool: str = ""


OnProgress = Callable[[Progress], Awaitable[None]]
Handler = Callable[[RunContext[Any], AsyncIterable[AgentStreamEvent]], Awaitable[None]]


def without_thoughts(text: str) -> str:
    """`text` without a block of thoughts at its beginning, closed or not."""
    start = text.lstrip()
    if not start.startswith(_OPEN):
        return text
    return start.partition(_CLOSE)[2].lstrip()


def said_so_far(parts: Iterable[str]) -> str:
    """What of an unfinished response can be shown already: not the beginning of a think tag."""
    text = without_context(without_thoughts("".join(parts)))
    return "" if _OPEN.startswith(text.strip()) else text


def reporting(on_progress: OnProgress) -> Handler:
    """A PydanticAI event handler that reports text and tools, response by response.

    The text of a response that goes on to call tools is dropped, as it is in the final answer.
    """

    async def report(_: RunContext[Any], events: AsyncIterable[AgentStreamEvent]) -> None:
        parts: dict[int, str] = {}
        async for event in events:
            match event:
                case PartStartEvent(index=index, part=TextPart(content=content)):
                    parts[index] = content
                case PartDeltaEvent(index=index, delta=TextPartDelta(content_delta=more)):
                    parts[index] = parts.get(index, "") + more
                case FunctionToolCallEvent(part=call):
                    await on_progress(Progress(tool=call.tool_name))
                    continue
                case _:
                    continue
            await on_progress(Progress(text=said_so_far(parts.values())))

    return report
