"""Defines the port to a model and reads the errors of its endpoint.

Messages are those of Chat Completions (`role`, `content`, `tool_calls`, `tool_call_id`):
https://platform.openai.com/docs/api-reference/chat/create

    ModelFailed       no usable response; another model, or the same one later, may give it
      StreamBroken    a stream that ended too early; nothing of it was used
      FeatureRefused  the endpoint does not take part of the request
      ToolRefused     it does not take some of the tools
      ToolsRefused    it does not take tools: ask again without them
    Declined          the model, or its provider, does not want to answer this

Only the server's own words are read, never the request that some servers repeat in an error, so
that nobody can switch a feature off by writing such a sentence. tests/data/model_refusals.json has
a real message for each rule."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, cast, get_args

from bot.agents.llm.http_responses import wished_pause_s
from bot.agents.tool_types import NO_TOOLS, Toolbox, ToolCall, ToolOutcome
from bot.text.json_text import load_json

Feature = Literal[
    "tools", "stream", "stream_options", "whole", "system", "turns", "images",
    "max_completion_tokens", "max_tokens", "temperature", "earlier_calls", "calls",
]  # fmt: skip
Message = dict[str, Any]
OnText = Callable[[str], Awaitable[None]]

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

_LONGEST = 2000
_MEANS = {401: "wrong_key", 402: "quota_used_up", 403: "not_allowed", 404: "no_such_model",
          429: "rate_limited"}  # fmt: skip
_PASSING = (408, 409, 429)
_FILTERED = ("content_filter", "content_policy_violation")
_USED_UP = "insufficient_quota"
_TOO_MUCH = (400, 413)
_NO_MODEL = re.compile(
    r"model.{0,80}(?:not (?:exist|found)|n't exist)|(?:unknown|no such|invalid) model",
    re.IGNORECASE | re.DOTALL,
)
_TOO_LONG = re.compile(  # OpenAI, DeepSeek, llama.cpp; Qwen; Anthropic, Zhipu; Kimi, Doubao, Gemini
    r"context.{0,20}(?:length|window|size)|range of input length|prompt (?:is too long|exceeds)"
    r"|exceed.{0,40}tokens?\b|tokens?\b.{0,40}exceed",
    re.IGNORECASE | re.DOTALL,
)

# 403 from OpenAI before it has verified who streams; 500 and 501 from llama.cpp and its kin.
_STATUSES = (400, 403, 404, 422, 500, 501)
_NOT = r"(?:not support|n't support|不支持)"
_SAYS: dict[Feature, tuple[str, ...]] = {
    "max_tokens": (r"use '?max_completion_tokens'? instead",),
    "temperature": (r"invalid temperature: only",),
    "tools": (
        r"does not support function call|function call(?:ing)? is not (?:supported|enabled)",
        r"tool call(?:s|ing)?`? (?:is|are) not supported",
        r"tool choice requires --enable-auto-tool-choice|--tool-call-parser",
        r"tools param requires --jinja|error rendering prompt with jinja template",
        r"does not support tools?\b|no endpoints found that support tool",
        r"(?:doesn't|not) support (?:the )?(?:tools?|function)\b(?! ?choice)",
        r"不支持.{0,12}(?:工具|函数|\btools?\b|function)",
    ),
    "system": (
        r"'messages\[\d+\]\.role' does not support 'system'|system role (?:is )?not supported",
        rf"{_NOT}.{{0,12}}system (?:role|message|prompt)|developer instruction is not enabled",
        r"role must be in \[user, assistant\]",
    ),
    "turns": (
        r"does not support successive (?:user|assistant)|roles must alternate",
        r"should be alternating|should alternate with assistant",
    ),
    "images": (
        r"image_url is only supported by certain models|unknown variant `image_url`",
        r"do(?:es)? not support image|no endpoints found that support image",
        r"messages\.content\.type 参数非法|is not a multimodal model|at most 0 image",
        r"image input (?:is )?not supported|missing data required for image input",
        rf"{_NOT}.{{0,20}}(?:image|vision|图片|图像)",
    ),
    "whole": (r"only supports? stream mode|enable_thinking must be set to false for non-stream",),
    "stream_options": (r"stream_options",),
    "stream": (
        r"verified to stream this model|stream(?:ing)?\b.{0,30}\bnot supported",
        r"not support stream(?:ing)?\b",
    ),
}

# Sentences that name the fields they are about.
_NAMING = (
    r"un(?:supported|known) (?:parameter|value): '(\w+)",
    r"unrecognized request arguments? supplied: ([\w, ]+)",
    r"does not support (?:the parameter|this) `?(\w+)",
    r"the parameter `(\w+)[^`]*` specified in the request (?:is|are) not (?:valid|supported)",
    r"\('body', '(\w+)'\)|\b(\w+): extra inputs are not permitted|unsupported param: (\w+)",
    r"does not support parameters: (.{1,200})",
)
_OF_SCHEMA = re.compile(r"schema|parameters|input_schema|function_?declarations", re.IGNORECASE)
_QUOTED = re.compile(r"['\"`]([A-Za-z0-9_-]{1,64})['\"`]")
_PLACES = (
    re.compile(r"function_?declarations\[(\d{1,3})\]", re.IGNORECASE),
    re.compile(r"\btools(?:\[|\.|['\"], ?)(\d{1,3})\b"),
)
_FLAGS = re.IGNORECASE | re.DOTALL
_PATTERNS = [(re.compile("|".join(says), _FLAGS), feature) for feature, says in _SAYS.items()]
_NAMING_PATTERN = re.compile("|".join(_NAMING), _FLAGS)

"""A field of a request, and: `whole`, an answer without streaming; `system`, a message of that
role; `turns`, two messages of one role in a row; `images`, pictures in a message; `calls`, tool
calls as such; `earlier_calls`, those of earlier turns without what an endpoint signs them with."""
"""Is given the whole text of the response so far."""


def next_step(reason: str) -> str | None:
    """Returns what an operator does about a failure; None if it passes by itself."""
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


class ToolRefused(ModelFailed):
    """The endpoint does not take the schemas of the tools `names`."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__("refuses_tool")
        self.names = names


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
    """The system message comes first, the question or tool results last. `outcomes`, by
    the id of a call of this run, is for a model that goes by rules: what the results say, as data.
    """

    messages: Sequence[Message]
    tools: Toolbox = NO_TOOLS
    max_tokens: int | None = None
    temperature: float | None = None
    outcomes: Mapping[str, ToolOutcome] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Response:
    """A model's words and tool calls; tokens as reported, 0 if they are not.

    `cut_off`: the model reached its own length limit. `break_reason`: it stopped writing, or its
    connection did, and `text` is what it had said by then. `thoughts` are the fields that a model
    wants back with the results of its calls.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    cut_off: bool = False
    break_reason: Literal["", "time", "connection"] = ""
    thoughts: Mapping[str, Any] = field(default_factory=dict)


def call_entry(
    id: str, name: str, arguments: str, extra: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A call as it stands in an assistant's message; `arguments` is JSON."""
    extra = extra or {}
    function = {**extra.get("function", {}), "name": name, "arguments": arguments}
    return {**extra, "id": id, "type": "function", "function": function}


def result_message(id: str, result: str) -> Message:
    """The message that answers a call."""
    return {"role": "tool", "tool_call_id": id, "content": result}


class Model(Protocol):
    """A model. With `on_text` the text is reported while it is written, response by response."""

    async def respond(self, request: Request, on_text: OnText | None = None) -> Response:
        """Raises `ModelFailed` and `Declined`."""
        ...


@dataclass(frozen=True, slots=True)
class HttpRefusal:
    """A response with a status other than 2xx, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_too_many(self) -> bool:
        """True if other requests are the reason, and not an account out of credit."""
        return self.status == 429 and _error(self.body).get("code") != _USED_UP

    @property
    def may_pass(self) -> bool:
        """True if the same request may succeed later."""
        return self.is_too_many or (self.status in _PASSING[:2]) or self.status >= 500

    @property
    def retry_after_s(self) -> float:
        """Returns the seconds to wait that the endpoint asks for; 0 if it does not say."""
        return wished_pause_s(self.headers, _error(self.body), time.time())

    def failure(self) -> ModelFailed | Declined:
        """Returns the error to raise. It holds no text of the endpoint."""
        error, words = _error(self.body), error_words(self.body)
        code = error.get("code")
        if code in _FILTERED:
            return Declined("")
        if self.status == 400 and (
            code == "model_not_found" or error.get("param") == "model" or _NO_MODEL.search(words)
        ):
            return ModelFailed("no_such_model")
        if self.status in _TOO_MUCH and (
            code == "context_length_exceeded" or _TOO_LONG.search(words)
        ):
            return ModelFailed("too_long")
        if self.status == 429 and code == _USED_UP:
            return ModelFailed("quota_used_up")
        return ModelFailed(_MEANS.get(self.status, f"status_{self.status}"))


def failure_of(exc: Exception) -> ModelFailed:
    """Returns the error to raise if no response came."""
    return ModelFailed("timeout" if _timed_out(exc) else "connection")


def broken_response(exc: Exception) -> ModelFailed:
    """Returns the error to raise if a response broke off."""
    return ModelFailed("timeout") if _timed_out(exc) else StreamBroken("connection")


def error_words(body: bytes) -> str:
    """Returns the server's own words in an error, without what it repeats of the request."""
    try:
        parsed_body = load_json(body)
    except ValueError:
        return body[:_LONGEST].decode("utf-8", "replace")
    return "\n".join(_messages(parsed_body))[:_LONGEST]


def _timed_out(exc: BaseException | None) -> bool:
    """True if a time limit caused it; the cause decides, not the outermost error."""
    while exc is not None:
        if isinstance(exc, TimeoutError):
            return True
        exc = exc.__cause__
    return False


def _error(body: bytes) -> Mapping[str, Any]:
    """Returns the error object; Gemini wraps it in a list."""
    try:
        parsed_body = load_json(body)
    except ValueError:
        return {}
    parsed_body = parsed_body[0] if isinstance(parsed_body, list) and parsed_body else parsed_body
    error = parsed_body.get("error", parsed_body) if isinstance(parsed_body, dict) else None
    return error if isinstance(error, dict) else {}


def _messages(value: Any) -> Iterator[str]:
    """Yields the message from where OpenAI, Ollama, LM Studio, FastAPI and OpenRouter put it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (text for one in value[:20] for text in _messages(one))
    elif isinstance(value, Mapping):
        if isinstance(place := value.get("loc"), list):
            yield f"{'.'.join(map(str, place))}: {value.get('msg')}"
            return
        for key in ("message", "error", "detail", "msg", "metadata", "raw"):
            yield from _messages(value.get(key))


def refused_feature(status: int, body: bytes, sent_features: Collection[Feature]) -> Feature | None:
    """Which of the features in `sent_features` an error refuses; None when it is about something
    else."""
    if status not in _STATUSES or not sent_features:
        return None
    return next((one for one in _refused_features(error_words(body)) if one in sent_features), None)


def refused_tools(status: int, body: bytes, names: Sequence[str]) -> list[str]:
    """Which of the tools `names` an error refuses, by their names or places; none if it is about
    something else."""
    if status not in (400, 422) or not names:
        return []
    error_text = f"{error_words(body)} {_error(body).get('param') or ''}"
    if not _OF_SCHEMA.search(error_text):
        return []
    for name in _QUOTED.findall(error_text):
        if name in names:
            return [name]  # what else is quoted may be a parameter
    matches = (set(map(int, pattern.findall(error_text))) for pattern in _PLACES)
    places = next(filter(None, matches), set[int]())
    return [name for place, name in enumerate(names) if place in places]


def _refused_features(words: str) -> Iterator[Feature]:
    for match in _NAMING_PATTERN.finditer(words):
        named_words = re.findall(r"\w+", " ".join(filter(None, match.groups())))
        # Without tools nothing is left to choose, so the wider feature counts.
        for name in sorted(set(named_words), key=lambda name: name != "tools"):
            if name in get_args(Feature):
                yield cast("Feature", name)
    yield from (feature for pattern, feature in _PATTERNS if pattern.search(words))
