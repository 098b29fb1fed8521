"""What an agent asks of a model, and what comes back: the port.

Messages are those of Chat Completions (`role`, `content`, `tool_calls`, `tool_call_id`):
https://platform.openai.com/docs/api-reference/chat/create

    ModelFailed       no usable response; another model, or the same one later, may give it
      StreamBroken    a stream that ended too early; nothing of it was used
      FeatureRefused  the endpoint does not take part of the request
      ToolsRefused    it does not take tools: ask again without them
    Declined          the model, or its provider, does not want to answer this
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from bot.agents.tool_types.outcomes import ToolOutcome
from bot.agents.tool_types.tool import NO_TOOLS, Toolbox, ToolCall

Feature = Literal[
    "tools", "stream", "stream_options", "whole", "system", "turns", "images",
    "max_completion_tokens", "max_tokens", "temperature", "unsigned_calls", "calls",
]  # fmt: skip
"""A field of a request, and: `whole`, an answer without streaming; `system`, a message of that
role; `turns`, two messages of one role in a row; `images`, pictures in a message; `calls`, earlier
tool calls as such; `unsigned_calls`, those without what endpoints sign them with."""

Message = dict[str, Any]
OnText = Callable[[str], Awaitable[None]]
"""Is given the whole text of the response so far."""


# Failures that do not pass until an operator does this.
NEXT_STEPS: Mapping[str, str] = {
    "wrong_key": "check OPENAI_API_KEY, and that it belongs to OPENAI_BASE_URL (scripts/doctor)",
    "not_allowed": "allow the model for OPENAI_API_KEY, or set another OPENAI_MODEL",
    "no_such_model": "check OPENAI_MODEL, and that OPENAI_BASE_URL ends as the provider says",
    "quota_used_up": "top up the account of OPENAI_API_KEY",
    "no_completion": "check OPENAI_BASE_URL: what answers there is not a chat completion endpoint "
    "(often the address has to end in /v1)",
    "only_thoughts": "check how the server of OPENAI_MODEL tells thoughts from answers (vLLM: "
    "--reasoning-parser), or turn thinking off there",
}
_LOOK = "run scripts/doctor, which asks the endpoint as the bot does"


def next_step(reason: str) -> str | None:
    """What an operator does about a failure; None for what passes by itself."""
    return NEXT_STEPS.get(reason) or (
        _LOOK if reason.startswith(("status_4", "refuses_")) else None
    )


class ModelFailed(Exception):
    """No usable response. `reason` is a kind for logs and metrics, without text of anybody."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class StreamBroken(ModelFailed):
    """A stream ended before the response was complete."""


class FeatureRefused(ModelFailed):
    """The endpoint does not take `feature`."""

    def __init__(self, feature: Feature) -> None:
        super().__init__(f"refuses_{feature}")
        self.feature = feature


class ToolsRefused(ModelFailed):
    """The model takes no tools; nothing was said yet. `sure`: the endpoint said that; otherwise it
    refused a request with tools for a reason that we do not know."""

    def __init__(self, *, sure: bool) -> None:
        super().__init__("refuses_tools")
        self.sure = sure


class Declined(Exception):
    """The model refused, or a filter did. The message is what was said about it, or nothing."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a model is given: system message first, question or tool results last. `outcomes`, by
    the id of a call of this run, is for a model that goes by rules: what the results say, as data.
    """

    messages: Sequence[Message]
    tools: Toolbox = NO_TOOLS
    max_tokens: int | None = None
    temperature: float | None = None
    outcomes: Mapping[str, ToolOutcome] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Response:
    """What a model said and which tools it wants called; tokens as reported, 0 when they are not.

    `cut_off`: the model reached its own length limit. `broken`: it stopped writing, or its
    connection did, and `text` is what it had said by then. `thoughts` are the fields that a model
    wants back with the results of its calls.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    cut_off: bool = False
    broken: Literal["", "time", "connection"] = ""
    thoughts: Mapping[str, Any] = field(default_factory=dict)


def called(
    id: str, name: str, arguments: str, extra: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A call as it stands in an assistant's message; `arguments` is JSON."""
    extra = extra or {}
    function = {**extra.get("function", {}), "name": name, "arguments": arguments}
    return {**extra, "id": id, "type": "function", "function": function}


def returned(id: str, result: str) -> Message:
    """The message that answers a call."""
    return {"role": "tool", "tool_call_id": id, "content": result}


class Model(Protocol):
    """A model. With `on_text` the text is reported while it is written, response by response."""

    async def respond(self, request: Request, on_text: OnText | None = None) -> Response:
        """Raises `ModelFailed` and `Declined`."""
        ...
