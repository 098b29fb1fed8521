"""Corrects our estimate of a request's tokens by what the endpoint reports.

The estimate knows no vocabulary; what a model counts for the same text, the roles around it and the
schemas of its tools is learned from the `usage` that comes with each response.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bot.agents.llm.model import Message, Model, OnText, Request, Response
from bot.agents.tool_types.tool import Toolbox
from memory.context import MESSAGE_OVERHEAD, REPLY_OVERHEAD
from memory.tokens import Calibration, estimate_lines, estimate_tokens

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

    def observe(self, request: Request, reported_tokens: int) -> None:
        """Learns from a request and its reported prompt tokens. Requests with images, whose cost
        no text tells, change nothing."""
        estimated_tokens = _estimated(request.messages)
        if estimated_tokens is not None:
            cost = estimated_tokens + self._cost(request.tools)
            self.calibration = self.calibration.observe(cost, reported_tokens)

    def _cost(self, tools: Toolbox) -> int:
        names = tuple(tools)
        if names not in self._tools:
            self._tools[names] = estimate_tokens(tools.json.decode()) if names else 0
        return self._tools[names]


class MeteredModel:
    """A model that tells `meter` what its requests were reported to cost."""

    def __init__(self, model: Model, meter: Meter) -> None:
        self._model = model
        self._meter = meter

    async def respond(self, request: Request, on_text: OnText | None = None) -> Response:
        response = await self._model.respond(request, on_text)
        if self._meter.wants():
            self._meter.observe(request, response.input_tokens)
        return response


class CountedModel:
    """A model whose tokens `count` is told: in and out, as they are reported."""

    def __init__(self, model: Model, count: Callable[[int, int], None]) -> None:
        self._model = model
        self._count = count

    async def respond(self, request: Request, on_text: OnText | None = None) -> Response:
        response = await self._model.respond(request, on_text)
        self._count(response.input_tokens, response.output_tokens)
        return response


def _estimated(messages: Sequence[Message]) -> int | None:
    """Our estimate of what the messages cost; None when there is more than text in them."""
    cost = REPLY_OVERHEAD
    for message in messages:
        content = message.get("content") or ""
        if not isinstance(content, str):
            return None
        functions = [call["function"] for call in message.get("tool_calls", ())]
        call_texts = (f"{one['name']} {one['arguments']}" for one in functions)
        texts = [text for text in (content, *call_texts) if text]
        cost += sum(estimate_lines(text) + MESSAGE_OVERHEAD for text in texts)
    return cost
