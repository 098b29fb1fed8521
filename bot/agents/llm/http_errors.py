"""Classifies HTTP errors of a model's endpoint and tells which are worth a retry. Pure."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from bot.agents.llm.model import Declined, ModelFailed, StreamBroken
from bot.text.lenient_json import loads

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
        header = self.headers.get("Retry-After", "")
        try:
            return max(0.0, float(header))
        except ValueError:
            pass
        try:
            return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
        except ValueError:
            return 0.0

    def failure(self) -> ModelFailed | Declined:
        """Returns the error to raise. It holds no text of the endpoint."""
        error, words = _error(self.body), words_of(self.body)
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


def broken(exc: Exception) -> ModelFailed:
    """Returns the error to raise if a response broke off."""
    return ModelFailed("timeout") if _timed_out(exc) else StreamBroken("connection")


def words_of(body: bytes) -> str:
    """Returns the server's own words in an error, without what it repeats of the request."""
    try:
        parsed_body = loads(body)
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
        parsed_body = loads(body)
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
