"""Builds the models that the settings name, with their fallback and the metering of their tokens.

The estimate knows no vocabulary; what a model counts for the same text, the roles around it and the
schemas of its tools is learned from the `usage` that comes with each response."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import structlog

from bot.agents.llm.chat_completions import BETWEEN_S, ChatModel
from bot.agents.llm.endpoint import LONGEST_WAIT_S, Endpoint
from bot.agents.llm.model import (
    Message,
    Model,
    ModelFailed,
    OnText,
    Request,
    Response,
    ToolsRefused,
    next_step,
)
from bot.agents.llm.model_traits import VisionProbe
from bot.agents.tool_types import Toolbox
from bot.process.usage import UsageCounter
from bot.settings import Settings
from memory.context import (
    MESSAGE_OVERHEAD,
    REPLY_OVERHEAD,
    Calibration,
    estimate_lines,
    estimate_tokens,
)

log = structlog.get_logger()

# After these many requests the factor is known well enough; then one request in ten is looked at.
_LEARNING = 20
_SAMPLE = 10


class Models:
    """The models of the configured endpoint, over one shared client; `await close()` at the end.

    With a fallback model each has half of the time to begin. Without a key every name is
    the offline model. `meter` learns from what the main model reports; `tally` counts what is used
    in the background.
    """

    def __init__(
        self, settings: Settings, meter: Meter | None = None, tally: UsageCounter | None = None
    ) -> None:
        self._tally = tally or UsageCounter()
        self._settings = settings
        self._meter = meter
        share = 0.5 if settings.openai_fallback_model else 1.0
        self._first_s = settings.model_timeout_seconds * share
        self._endpoint = Endpoint(
            settings.openai_api_key,
            settings.openai_base_url,
            timeout_s=max(self._first_s, BETWEEN_S),
        )

    def main(self) -> Model:
        """The model of the settings."""
        return self.model_of(self._settings.openai_model)

    def model_of(self, name: str) -> Model:
        """The model `name`, with the fallback model behind it."""
        if not self._settings.openai_api_key:
            from bot.agents.offline.model import OfflineModel  # for who has no key

            return OfflineModel(by_meaning=bool(self._settings.embedding_model))
        has_other = bool(self._settings.openai_fallback_model)
        waits_s = self._first_s if has_other else LONGEST_WAIT_S  # the other model need not wait
        first: Model = ChatModel(self._endpoint, name, first_s=self._first_s, waits_s=waits_s)
        if self._meter and name == self._settings.openai_model:
            first = MeteredModel(first, self._meter)
        if not has_other:
            return first
        other = self._settings.openai_fallback_model
        return Fallback(first, ChatModel(self._endpoint, other, first_s=self._first_s))

    def counted_model(self, name: str, kind: str) -> Model:
        """The model `name`, whose tokens count as `kind` and not as an answer's."""
        return CountedModel(self.model_of(name), partial(self._tally.count_request, kind))

    def judge(self) -> Model | None:
        """The model that judges whom a message is for; None: switched off, or there is no model."""
        if not self._settings.use_llm_judge or not self._settings.openai_api_key:
            return None
        return self.counted_model(
            self._settings.judge_model or self._settings.openai_model, "judge"
        )

    def sight(self) -> VisionProbe:
        """Whether the model of the settings sees pictures."""
        settings = self._settings
        if not settings.openai_api_key:
            return VisionProbe(settings.openai_vision)
        chat_model = ChatModel(self._endpoint, settings.openai_model, first_s=self._first_s)
        abilities = self._endpoint.abilities(settings.openai_model)
        return VisionProbe(settings.openai_vision, chat_model, abilities)

    async def close(self) -> None:
        await self._endpoint.close()


class Fallback:
    """Asks `second` when `first` has failed before it said anything."""

    def __init__(self, first: Model, second: Model) -> None:
        self._first, self._second = first, second

    async def respond(self, request: Request, on_text: OnText | None = None) -> Response:
        """Raises `ModelFailed`, `ToolsRefused` and `Declined`: who declines is not gone around."""
        try:
            return await self._first.respond(request, on_text)
        except ModelFailed as exc:
            if isinstance(exc, ToolsRefused) and exc.sure:
                raise
            failure = exc
            mended_by = next_step(exc.reason)
            say = log.error if mended_by else log.warning
            say("model.fallback", reason=exc.reason, next_step=mended_by)
        try:
            return await self._second.respond(request, on_text)
        except ModelFailed:
            if isinstance(failure, ToolsRefused):  # without tools the first may still answer
                raise failure from None
            raise


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
        estimated_tokens = _estimate_tokens(request.messages)
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


def _estimate_tokens(messages: Sequence[Message]) -> int | None:
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
