"""The `openai` package at work: what to do about a request that did not succeed at once.

Loaded with the first such request; only `endpoint` imports it. The package knows which answers are
worth another attempt and after how long (Retry-After), and tells errors by their kind. It is given
what the first attempt met, as if that had been its own.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import httpx2
import openai
from aiohttp import ClientError
from openai import AsyncOpenAI, AsyncStream, DefaultAioHttpClient

from bot.agents.llm.http_post import HttpRefusal, HttpReply, broken, timed_out
from bot.agents.llm.model import Declined, FeatureRefused, ModelFailed
from bot.agents.llm.refusals import Sent, refused_feature

if TYPE_CHECKING:
    _HttpClient = httpx2.AsyncClient
else:
    _HttpClient = DefaultAioHttpClient

Met = HttpRefusal | Exception
"""What an attempt met in place of an answer."""

_LIMITS = httpx2.Limits(max_connections=1000, max_keepalive_connections=100, keepalive_expiry=30.0)
_HEADERS = {"Content-Type": "application/json"}
_PAYMENT_REQUIRED = 402
_NO_MODEL = re.compile(
    r"model.{0,80}(?:not (?:exist|found)|n't exist)|(?:unknown|no such|invalid) model",
    re.IGNORECASE | re.DOTALL,
)
_TOO_LONG = re.compile(  # OpenAI, DeepSeek, llama.cpp; Qwen; Anthropic, Zhipu; Kimi, Doubao, Gemini
    r"context.{0,20}(?:length|window|size)|range of input length|prompt (?:is too long|exceeds)"
    r"|exceed.{0,40}tokens?\b|tokens?\b.{0,40}exceed",
    re.IGNORECASE | re.DOTALL,
)
_TOO_MUCH = (400, 413)
_FILTERED = ("content_filter", "content_policy_violation")


class _Replaying(_HttpClient):
    """Gives the first request of each task what is kept for it, and sends the others."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        kept = _kept.get()
        match kept.pop() if kept else None:
            case HttpRefusal(status, headers, body):
                plain = {k: v for k, v in headers.items() if k.lower() not in _OF_THE_WIRE}
                return httpx2.Response(status, headers=plain, content=body, request=request)
            case Exception() as exc:
                raise exc
        return await super().send(request, **options)


_kept: ContextVar[list[Met] | None] = ContextVar("kept", default=None)
_OF_THE_WIRE = ("content-encoding", "content-length", "transfer-encoding")


def open_client(api_key: str, base_url: str, *, timeout_s: float, retries: int) -> AsyncOpenAI:
    """A client. Its time limit is for connecting and for each wait for more of a response."""
    return AsyncOpenAI(
        api_key=api_key,
        base_url=base_url,
        timeout=timeout_s,
        max_retries=retries,
        http_client=_Replaying(limits=_LIMITS),
    )


@asynccontextmanager
async def answered(
    client: AsyncOpenAI, path: str, body: bytes, met: Met, *, stream: bool, sent: Sent
) -> AsyncIterator[HttpReply]:
    """The answer to another attempt, after the first one met `met`.

    Raises `ModelFailed` and `Declined` where there is none; as `broken` when it breaks off.
    """
    try:
        response: httpx2.Response = await _posted(client, path, body, met, stream=stream)
    except openai.APIStatusError as exc:
        if feature := refused_feature(exc.status_code, exc.response.content, sent()):
            raise FeatureRefused(feature) from exc
        raise failure(exc) from exc
    except openai.OpenAIError as exc:
        raise failure(exc) from exc
    try:
        yield HttpReply(
            response.headers.get("content-type", ""), response.aread, response.aiter_bytes
        )
    except (httpx2.HTTPError, httpx2.StreamError, ClientError, TimeoutError) as exc:
        raise broken(exc) from exc
    finally:
        await response.aclose()


async def _posted(client: AsyncOpenAI, path: str, body: bytes, met: Met, *, stream: bool) -> Any:
    kept = _kept.set([met])
    try:
        return await client.post(
            path,
            content=body,
            cast_to=httpx2.Response,
            options={"headers": _HEADERS},
            stream=stream,
            stream_cls=AsyncStream[Any],
        )
    except (ClientError, httpx2.HTTPError) as exc:
        raise ModelFailed("connection") from exc
    finally:
        _kept.reset(kept)


def failure(exc: openai.OpenAIError) -> ModelFailed | Declined:
    """What an error of the SDK means for us; the texts of endpoints stay out of it."""
    match exc:
        case openai.APIConnectionError():
            return ModelFailed("timeout" if timed_out(exc) else "connection")
        case openai.AuthenticationError():
            return ModelFailed("wrong_key")
        case openai.PermissionDeniedError() if exc.code not in _FILTERED:
            return ModelFailed("not_allowed")
        case openai.NotFoundError():
            return ModelFailed("no_such_model")
        case openai.BadRequestError() if exc.code not in _FILTERED and _names_no_model(exc):
            return ModelFailed("no_such_model")
        case openai.RateLimitError():
            used_up = exc.code == "insufficient_quota"
            return ModelFailed("quota_used_up" if used_up else "rate_limited")
        case openai.APIStatusError() if exc.code in _FILTERED:
            return Declined("")
        case openai.APIStatusError() if exc.status_code in _TOO_MUCH and _is_too_long(exc):
            return ModelFailed("too_long")
        case openai.APIStatusError() if exc.status_code == _PAYMENT_REQUIRED:
            return ModelFailed("quota_used_up")
        case openai.APIStatusError():
            return ModelFailed(f"status_{exc.status_code}")
    return ModelFailed("malformed")


def _is_too_long(exc: openai.APIStatusError) -> bool:
    """Whether it says that the prompt is longer than the model takes."""
    return exc.code == "context_length_exceeded" or bool(_TOO_LONG.search(exc.message[:2000]))


def _names_no_model(exc: openai.APIStatusError) -> bool:
    """Whether it says that there is no such model; some endpoints do with a status 400."""
    named = exc.code == "model_not_found" or exc.param == "model"
    return named or bool(_NO_MODEL.search(exc.message[:2000]))
