"""Calls Feishu's API: token, pacing, one exchange, and retries where they help; and the one call of
speech recognition.

The tenant access token is fetched once for all who wait, renewed early and purged when refused.
Retries are capped in attempts and in total time. Source: Feishu, "Custom apps obtain
tenant_access_token"; "Speech file recognition" (speech_to_text-v1): 60 seconds of PCM at most, 20
calls a second for all apps of the tenant, not in the free plan."""

from __future__ import annotations

import asyncio
import json
import random
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import structlog

from bot.feishu.errors import Action, FeishuError, FeishuFailure, Unreachable, classify
from bot.feishu.fields import as_dict, as_text
from bot.feishu.models import required_text
from bot.feishu.transport import (
    ApiRequest,
    ApiResponse,
    Pacer,
    SharedPace,
    Transport,
    per_second_pacer,
)
from bot.process.concurrency import asker_of_task, without_slot

_log = structlog.get_logger(__name__)

_RETRIED_ACTIONS = frozenset({Action.RETRY, Action.IN_FLIGHT})

_SPEECH_PATH = "/open-apis/speech_to_text/v1/speech/file_recognize"
_SPEECH_CALLS_A_SECOND = 20
_RENEW_S = 30 * 60
_RETRY_RENEWAL_S = 30


class Caller:
    """Calls in the name of one app, whose limit for each API `app` keeps.

    `jitter` gives numbers in [0, 1). `count` is told the API of each call that Feishu counts: those
    that it answered with an error status are not (Feishu, "Custom app API call limit").
    """

    def __init__(
        self,
        transport: Transport,
        app_id: str,
        app_secret: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
        policy: RetryPolicy | None = None,
        app: Pacer | None = None,
        count: Callable[[str], None] = lambda api: None,
    ) -> None:
        self._count = count
        self._app = app
        self._transport = transport
        self._credentials = {"app_id": app_id, "app_secret": app_secret}
        self._clock, self._sleep, self._jitter = clock, sleep, jitter
        self._policy = policy or RetryPolicy()
        self._tokens = TenantToken(self._fetch_token, clock=clock)

    async def call(
        self,
        request: ApiRequest,
        pacer: Pacer | None = None,
        key: str = "",
        policy: RetryPolicy | None = None,
        *,
        as_user: str = "",
    ) -> dict[str, Any]:
        """The answer's JSON; `pacer` says when a call for `key` may leave. `as_user`: the access
        token of a person, in whose name it is made instead of the app's; it is not renewed here."""
        response = await self.exchange(request, pacer, key, policy, as_user=as_user)
        return as_dict(json.loads(response.body))

    async def call_as(
        self, request: ApiRequest, as_user: str, pacer: Pacer | None = None
    ) -> dict[str, Any]:
        """The data of a call in the name of a person who waits for an answer. `as_user` is their
        access token."""
        answer = await self.call(request, pacer, request.api, _WHILE_PEOPLE_WAIT, as_user=as_user)
        return as_dict(answer.get("data"))

    async def exchange(
        self,
        request: ApiRequest,
        pacer: Pacer | None = None,
        key: str = "",
        policy: RetryPolicy | None = None,
        *,
        is_file: bool = False,
        as_user: str = "",
    ) -> ApiResponse:
        """The first good answer, retried as `policy` allows, with one renewal of the token."""
        with without_slot():
            return await self._exchange(request, pacer, key, policy, is_file, as_user)

    async def _exchange(
        self,
        request: ApiRequest,
        pacer: Pacer | None,
        key: str,
        policy: RetryPolicy | None,
        is_file: bool,
        as_user: str,
    ) -> ApiResponse:
        start_s, attempt, token_renewed, maybe_done = self._clock(), 0, False, False
        while True:
            attempt += 1
            token = as_user or await self._token(maybe_done=maybe_done)
            if pacer:
                await pacer.turn(key, asker_of_task() or as_user)
            if self._app and request.api:
                await self._app.turn(request.api)
            outcome = await self._attempt(request, token, is_file)
            if isinstance(outcome, ApiResponse):
                return outcome
            outcome.maybe_done = maybe_done = maybe_done or outcome.maybe_done
            if _token_refused(outcome) and not token_renewed and not as_user:
                self._tokens.purge(token)
                attempt, token_renewed = attempt - 1, True
                continue
            await self._wait_or_raise(request, outcome, attempt, start_s, policy)

    async def _attempt(
        self, request: ApiRequest, token: str, is_file: bool = False
    ) -> ApiResponse | FeishuFailure:
        start_s = self._clock()
        try:
            response = await self._transport.send(request, token)
        except Unreachable as failure:
            return failure
        if request.api and response.status < 400:
            self._count(request.api)
        classified_error = None if is_file and _is_file(response) else _failure_of(response)
        _log.debug(
            "feishu.call",
            method=request.method,
            path=request.path,
            status=response.status,
            code=classified_error.code if isinstance(classified_error, FeishuError) else 0,
            log_id=response.headers.get("X-Tt-Logid", ""),
            ms=round((self._clock() - start_s) * 1000, 1),
        )
        return classified_error or response

    async def _wait_or_raise(
        self,
        request: ApiRequest,
        failure: FeishuFailure,
        attempt: int,
        start_s: float,
        policy: RetryPolicy | None = None,
    ) -> None:
        elapsed_s = self._clock() - start_s
        delay_s = retry_delay(policy or self._policy, failure, attempt, elapsed_s, self._jitter())
        if delay_s is None:
            raise failure
        _log.warning(
            "feishu.retry",
            method=request.method,
            path=request.path,
            attempt=attempt,
            delay_s=round(delay_s, 2),
            code=failure.code if isinstance(failure, FeishuError) else 0,
            log_id=failure.log_id if isinstance(failure, FeishuError) else "",
            reason=failure.reason if isinstance(failure, Unreachable) else "",
        )
        await self._sleep(delay_s)

    async def _token(self, *, maybe_done: bool) -> str:
        """The token; without one, what was to be done with it is as unknown as it was before."""
        try:
            return await self._tokens.get()
        except FeishuFailure as failure:
            failure.maybe_done = maybe_done
            raise

    async def _fetch_token(self) -> Token:
        path = "/open-apis/auth/v3/tenant_access_token/internal"
        request, start_s, attempt = (
            ApiRequest("POST", path, body=self._credentials),
            self._clock(),
            0,
        )
        while True:
            attempt += 1
            outcome = await self._attempt(request, "")
            if isinstance(outcome, ApiResponse):
                return _token_of_answer(as_dict(json.loads(outcome.body)))
            await self._wait_or_raise(request, outcome, attempt, start_s)


def _token_of_answer(answer: dict[str, Any]) -> Token:
    expire = answer.get("expire")
    return Token(
        required_text(answer, "tenant_access_token"),
        float(expire) if isinstance(expire, int | float) else 0.0,
    )


def _token_refused(outcome: FeishuFailure) -> bool:
    return isinstance(outcome, FeishuError) and outcome.action is Action.REFRESH_TOKEN


def _failure_of(response: ApiResponse) -> FeishuFailure | None:
    return classify(response.status, response.headers, response.body)


def _is_file(response: ApiResponse) -> bool:
    """Whether a download brought a file; errors are JSON, under HTTP 400 or even 200."""
    if response.status != 200:
        return False
    if "Content-Disposition" in response.headers or len(response.body) > 4096:
        return True
    failure = _failure_of(response)
    return not isinstance(failure, FeishuError)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Delays double from `base_s` up to `cap_s`, each with up to as much again of jitter."""

    max_attempts: int = 5
    max_total_s: float = 30.0
    base_s: float = 0.3
    cap_s: float = 5.0


_WHILE_PEOPLE_WAIT = RetryPolicy(max_attempts=3, max_total_s=10.0)


NO_RETRY = RetryPolicy(max_attempts=1)


def retry_delay(
    policy: RetryPolicy, failure: FeishuFailure, attempt: int, elapsed_s: float, jitter: float
) -> float | None:
    """Seconds until the next attempt, or None to give up. `jitter` is in [0, 1).

    What Feishu asks for (`x-ogw-ratelimit-reset`) is waited in full or not at all: a wait that
    does not fit into the policy's total is left to the caller's queue.
    """
    if attempt >= policy.max_attempts or not _repeatable(failure):
        return None
    retry_after_s = (
        failure.retry_after_s if isinstance(failure, FeishuError | Unreachable) else None
    )
    backoff = min(policy.cap_s, policy.base_s * 2 ** (attempt - 1)) * (1 + jitter)
    delay = backoff if retry_after_s is None else retry_after_s + policy.base_s * jitter
    return delay if elapsed_s + delay <= policy.max_total_s else None


def _repeatable(failure: FeishuFailure) -> bool:
    if isinstance(failure, FeishuError):
        return failure.action in _RETRIED_ACTIONS
    return isinstance(failure, Unreachable)


@dataclass(frozen=True, slots=True)
class Token:
    """`value` is a secret; `expire_s` is its remaining life in seconds when it was fetched."""

    value: str
    expire_s: float

    def __repr__(self) -> str:
        return f"Token(expire_s={self.expire_s})"


class TenantToken:
    """Hands out a valid token. For one event loop."""

    def __init__(
        self,
        fetch: Callable[[], Awaitable[Token]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fetch = fetch
        self._clock = clock
        self._lock = asyncio.Lock()
        self._value = ""
        self._renew_at = 0.0
        self._expires_at = 0.0

    async def get(self) -> str:
        """A token. Raises what the fetch raises when there is none that is still valid."""
        if self._fresh():
            return self._value
        async with self._lock:
            if not self._fresh():
                await self._renew()
            return self._value

    def purge(self, refused_token: str) -> None:
        """Forget `refused_token`; a token fetched in the meantime stays."""
        if self._value == refused_token:
            self._value = ""

    def _fresh(self) -> bool:
        return bool(self._value) and self._clock() < self._renew_at

    async def _renew(self) -> None:
        asked_at = self._clock()
        try:
            token = await self._fetch()
        except FeishuFailure as failure:
            if not self._value or self._clock() >= self._expires_at:
                raise
            # The old token still works: do not ask again for every call meanwhile.
            self._renew_at = min(self._clock() + _RETRY_RENEWAL_S, self._expires_at)
            _log.warning("feishu.token_renewal_failed", reason=type(failure).__name__)
            return
        self._value = token.value
        self._expires_at = asked_at + token.expire_s
        self._renew_at = self._expires_at - min(_RENEW_S, token.expire_s / 4)


class SpeechCalls:
    """The calls of one app."""

    def __init__(
        self,
        caller: Caller,
        pace: SharedPace,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[object]],
    ) -> None:
        self._caller = caller
        self._pacer = per_second_pacer(
            "speech", _SPEECH_CALLS_A_SECOND, pace, clock=clock, sleep=sleep
        )

    async def recognise(self, pcm: str) -> str:
        """The words of less than a minute of voice: 16-bit samples, 16,000 a second, one channel,
        in base64. "": there are none. Raises FeishuFailure."""
        config = {"file_id": secrets.token_hex(8), "format": "pcm", "engine_type": "16k_auto"}
        body = {"speech": {"speech": pcm}, "config": config}
        request = ApiRequest("POST", _SPEECH_PATH, body=body, api="recognise speech")
        answer = await self._caller.call(request, self._pacer, "speech")
        return as_text(as_dict(answer.get("data")).get("recognition_text")).strip()
