"""The OpenAI client without its walk through every message and tool schema.

The SDK compares each value of a request with its type annotations to rename keys, which Chat
Completions requests do not need; with a dozen tools that walk is a third of a turn's CPU time.
Values in `extra_body` are sent as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from openai import AsyncOpenAI, Omit, omit
from openai.resources.chat import AsyncChat
from openai.resources.chat.completions import AsyncCompletions


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
