"""The OpenAI client and model without their walks through every message and tool schema.

The SDK compares each value of a request with its type annotations to rename keys, which Chat
Completions requests do not need; with a dozen tools that walk is a third of a turn's CPU time.
Values in `extra_body` are sent as they are. PydanticAI copies and adapts every tool's schema for
each request; here that is done once for the same tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from openai import AsyncOpenAI, Omit, omit
from openai.resources.chat import AsyncChat
from openai.resources.chat.completions import AsyncCompletions
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.tools import ToolDefinition

_KINDS_OF_REQUESTS = 8  # the manager's and each specialist's tools, at the most


class PlainOpenAI(AsyncOpenAI):
    """An `AsyncOpenAI` whose chat completions send messages and tools as given."""

    @cached_property
    def chat(self) -> AsyncChat:
        return _Chat(self)


class _Chat(AsyncChat):
    @cached_property
    def completions(self) -> AsyncCompletions:
        return _Completions(self._client)


class _Completions(AsyncCompletions):
    async def create(  # type: ignore[override]
        self,
        *,
        messages: Iterable[Any],
        tools: Iterable[Any] | Omit = omit,
        extra_body: Mapping[str, Any] | None = None,
        **others: Any,
    ) -> Any:
        given: dict[str, Any] = {"messages": list(messages)}
        if not isinstance(tools, Omit):
            given["tools"] = list(tools)
        body = {**given, **(extra_body or {})}
        return await super().create(messages=[], extra_body=body, **others)


class PlainChatModel(OpenAIChatModel):
    """An `OpenAIChatModel` that keeps the adapted schemas of the tools it has seen last."""

    def __init__(self, name: str, *, provider: Any) -> None:
        super().__init__(name, provider=provider)
        self._adapted: list[tuple[list[ToolDefinition], list[ToolDefinition]]] = []

    def customize_request_parameters(
        self, model_request_parameters: ModelRequestParameters
    ) -> ModelRequestParameters:
        tools = model_request_parameters.function_tools
        if model_request_parameters.output_tools or model_request_parameters.output_object:
            return super().customize_request_parameters(model_request_parameters)
        for seen, adapted in self._adapted:
            if seen == tools:
                return replace(model_request_parameters, function_tools=adapted)
        made = super().customize_request_parameters(model_request_parameters)
        self._adapted = [(list(tools), made.function_tools), *self._adapted][:_KINDS_OF_REQUESTS]
        return made
