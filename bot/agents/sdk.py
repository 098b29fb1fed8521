"""The `openai` package at work: one POST over aiohttp, and its errors as ours.

Loaded with the first request; only `endpoint` imports it. What the SDK is used for is what it does
well: base URL, headers, time limits, retries that honour Retry-After, and errors by kind. Its typed
requests and responses would cost three times as much as everything else of a request.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import openai
from aiohttp import ClientError
from openai import AsyncOpenAI, AsyncStream, DefaultAioHttpClient

from bot.agents.model import Declined, ModelFailed, StreamBroken, StreamOptionsRefused

# People pause between questions; a new connection is a new TLS handshake.
_LIMITS = httpx2.Limits(max_connections=1000, max_keepalive_connections=100, keepalive_expiry=30.0)
_HEADERS = {"Content-Type": "application/json"}
_PAYMENT_REQUIRED = 402
_NO_MODEL = re.compile(
    r"model.{0,80}(?:not (?:exist|found)|n't exist)|(?:unknown|no such|invalid) model",
    re.IGNORECASE | re.DOTALL,
)
_FILTERED = ("content_filter", "content_policy_violation")


def open_client(api_key: str, base_url: str, *, timeout_s: float, retries: int) -> AsyncOpenAI:
    """A client. Its time limit is for connecting and for each wait for more of a response."""
    return AsyncOpenAI(
        api_key=api_key,
        base_url=base_url or None,
        timeout=timeout_s,
        max_retries=retries,
        http_client=DefaultAioHttpClient(limits=_LIMITS),
    )


@asynccontextmanager
async def posted(
    client: AsyncOpenAI, path: str, body: bytes, *, stream: bool
) -> AsyncIterator[httpx2.Response]:
    """The response to a POST, its connection free again at the end.

    Raises `ModelFailed` and `Declined`; `StreamBroken` when it breaks off while it is read.
    """
    response: httpx2.Response = await _sent(client, path, body, stream=stream)
    try:
        yield response
    except (httpx2.HTTPError, httpx2.StreamError, ClientError, TimeoutError) as exc:
        if _timed_out(exc):
            raise ModelFailed("timeout") from exc
        raise StreamBroken("connection") from exc
    finally:
        await response.aclose()


async def _sent(client: AsyncOpenAI, path: str, body: bytes, *, stream: bool) -> Any:
    try:
        return await client.post(
            path,
            content=body,
            cast_to=httpx2.Response,
            options={"headers": _HEADERS},
            stream=stream,
            stream_cls=AsyncStream[Any],
        )
    except openai.OpenAIError as exc:
        raise failure(exc) from exc
    except (ClientError, httpx2.HTTPError) as exc:
        raise ModelFailed("connection") from exc


def failure(exc: openai.OpenAIError) -> ModelFailed | Declined:
    """What an error of the SDK means for us; the texts of endpoints stay out of it."""
    match exc:
        case openai.APIConnectionError():
            return ModelFailed("timeout" if _timed_out(exc) else "connection")
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
        case openai.APIStatusError() if exc.status_code == _PAYMENT_REQUIRED:
            return ModelFailed("quota_used_up")
        case openai.APIStatusError():
            kind = StreamOptionsRefused if "stream_options" in exc.message else ModelFailed
            return kind(f"status_{exc.status_code}")
    return ModelFailed("malformed")


def _names_no_model(exc: openai.APIStatusError) -> bool:
    """Whether it says that there is no such model; some endpoints do with a status 400."""
    named = exc.code == "model_not_found" or exc.param == "model"
    return named or bool(_NO_MODEL.search(exc.message[:2000]))


def _timed_out(exc: BaseException | None) -> bool:
    """Whether waiting caused it; the transport also calls a refused connection a timeout."""
    while exc is not None:
        if isinstance(exc, TimeoutError):
            return True
        exc = exc.__cause__
    return False
