"""Models that play a script, and ways to look at what a model was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from bot.agents.llm.model import Message, OnText, Request, Response
from bot.agents.prompts.prompt import without_knowledge
from bot.agents.tool_types import ToolCall


def calling(*calls: tuple[str, Mapping[str, Any]], id: str = "call") -> Response:
    """A response that calls tools by name with arguments."""
    made = (
        ToolCall(f"{id}_{number}", name, json.dumps(arguments, ensure_ascii=False))
        for number, (name, arguments) in enumerate(calls)
    )
    return Response(calls=tuple(made), input_tokens=50, output_tokens=5)


def response_of(step: Any) -> Response:
    """A text, a list of calls, or a response; an exception is raised."""
    if isinstance(step, Exception):
        raise step
    if isinstance(step, str):
        return Response(step, input_tokens=50, output_tokens=5)
    return step if isinstance(step, Response) else calling(*step)


class Scripted:
    """A model that plays its steps in order and keeps what it was asked.

    A step is a text, a list of tool calls, a `Response`, an exception, or an event to wait for.
    """

    def __init__(self, *steps: Any) -> None:
        self.steps = list(steps)
        self.requests: list[Request] = []

    async def respond(self, request: Request, on_text: OnText | None = None) -> Response:
        self.requests.append(Request(list(request.messages), request.tools))
        step = self.steps.pop(0)
        if isinstance(step, asyncio.Event):
            await step.wait()
        response = response_of(step)
        if on_text and response.text:
            await on_text(response.text)
        return response

    def instructions(self, request: int = 0) -> str:
        return instructions(self.requests[request])

    def results(self) -> list[str]:
        """The tool results that stood in the last request."""
        return results(self.requests[-1])


class Acting:
    """A model whose every step a function of the request decides."""

    def __init__(self, step: Callable[[Request], Any]) -> None:
        self._step = step

    async def respond(self, request: Request, on_text: OnText | None = None) -> Response:
        return response_of(self._step(request))


def instructions(request: Request) -> str:
    """What the model is told besides the conversation: rules, and what is known for the answer."""
    known = [_split(one)[0] for one in request.messages[1:]]
    return "\n\n".join([str(request.messages[0]["content"]), *filter(None, known)])


def results(request: Request) -> list[str]:
    return [one["content"] for one in request.messages if one["role"] == "tool"]


def said(request: Request) -> list[str]:
    """What stands in the request after the instructions, message by message."""
    return [_split(one)[1] for one in request.messages[1:]]


def _split(message: Message) -> tuple[str, Any]:
    content = message["content"]
    return without_knowledge(content) if isinstance(content, str) else ("", content)


def everything(request: Request) -> str:
    """All words of a request."""
    return "\n".join(str(one.get("content") or "") for one in request.messages)
