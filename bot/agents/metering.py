"""What a request really costs: the endpoint's reported tokens correct our estimate of the next one.

The estimate knows no vocabulary; what a model counts for the same text, the roles around it and the
schemas of its tools is learned from the `usage` that comes with each response.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from bot.agents.completions import PlainChatModel
from memory.context import MESSAGE_OVERHEAD, REPLY_OVERHEAD
from memory.tokens import Calibration, estimate_tokens

# After these many requests the factor is known well enough; then one request in ten is looked at.
_LEARNING = 20
_SAMPLE = 10


class Meter:
    """The calibration of one model, kept by the process and shared by its turns."""

    def __init__(self) -> None:
        self.calibration = Calibration()
        self._requests = 0
        self._tools: dict[tuple[str, ...], int] = {}

    def wants(self) -> bool:
        """Counts a request; whether to learn from it."""
        self._requests += 1
        return self._requests <= _LEARNING or self._requests % _SAMPLE == 0

    def observe(
        self, messages: Sequence[ModelMessage], tools: Sequence[ToolDefinition], reported: int
    ) -> None:
        """Learns from a request and its reported prompt tokens. Requests with images, whose cost
        no text tells, change nothing."""
        estimated = _estimated(messages)
        if estimated is not None:
            self.calibration = self.calibration.observe(estimated + self._cost(tools), reported)

    def _cost(self, tools: Sequence[ToolDefinition]) -> int:
        names = tuple(tool.name for tool in tools)
        if names not in self._tools:
            self._tools[names] = sum(map(_schema_cost, tools))
        return self._tools[names]


class MeteredChatModel(PlainChatModel):
    """A Chat Completions model that tells its `meter` what requests were reported to cost."""

    def __init__(self, name: str, *, provider: Any, meter: Meter) -> None:
        super().__init__(name, provider=provider)
        self._meter = meter

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        response = await super().request(messages, model_settings, model_request_parameters)
        if self._meter.wants():
            reported = response.usage.input_tokens
            self._meter.observe(messages, model_request_parameters.function_tools, reported)
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        async with super().request_stream(
            messages, model_settings, model_request_parameters, run_context
        ) as response:
            yield response
            if self._meter.wants():
                reported = response.usage.input_tokens
                self._meter.observe(messages, model_request_parameters.function_tools, reported)


def _estimated(messages: Sequence[ModelMessage]) -> int | None:
    """Our estimate of what the messages cost; None when there is more than text in them."""
    cost = REPLY_OVERHEAD
    instructions = ""
    for message in messages:
        if message.kind == "request":
            instructions = message.instructions or instructions
        for part in message.parts:
            text = _text(part)
            if text is None:
                return None
            cost += estimate_tokens(text) + MESSAGE_OVERHEAD
    return cost + (estimate_tokens(instructions) + MESSAGE_OVERHEAD if instructions else 0)


def _text(part: object) -> str | None:
    match part:
        case UserPromptPart(content=str(text)) | TextPart(content=text):
            return text
        case UserPromptPart():
            return None
        case ThinkingPart():
            return ""
        case ToolCallPart():
            return f"{part.tool_name} {part.args_as_json_str()}"
    render = getattr(part, "model_response_str", None)
    return render() if render else str(getattr(part, "content", ""))


def _schema_cost(tool: ToolDefinition) -> int:
    schema = {"description": tool.description, "parameters": tool.parameters_json_schema}
    return estimate_tokens(f"{tool.name} {json.dumps(schema, ensure_ascii=False)}")
