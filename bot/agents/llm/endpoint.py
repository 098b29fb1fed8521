"""An OpenAI-compatible endpoint: one POST over pooled connections, retried where that may help."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager

import aiohttp
from yarl import URL

from bot.agents.llm.http_errors import HttpRefusal, broken, failure_of
from bot.agents.llm.model import Declined, Feature, FeatureRefused, ModelFailed
from bot.agents.llm.model_request_queue import LONGEST_WAIT_S, Admission, ModelRequestQueue
from bot.agents.llm.refusals import refused_feature
from bot.agents.llm.request_adaptation import Abilities
from bot.agents.llm.time_limits import time_left
from bot.agents.llm.trusted_certificates import trusted
from bot.process.working_places import waiting
from memory.proxies import proxy_for

TIMEOUT_S = 60.0
RETRIES = 2
_SUCCESS = range(200, 300)
_OPENAI = "https://api.openai.com/v1"
_CONNECTIONS = 1000
_KEEPALIVE_S = 30.0  # people pause between questions; a new connection is a new TLS handshake
_MAX_REFUSAL_BYTES = 1024 * 1024
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 8.0

Sent = Callable[[], Collection[Feature]]
"""Gives the features of a request that an endpoint could refuse."""


class Endpoint:
    """One endpoint and its connections; `await close()` at the end.

    `timeout_s` is for connecting and for each wait for more of a response. A request that fails
    before its response begins is retried `retries` times, as late as Retry-After asks. What the
    models refuse is remembered for all that ask through it. Proxies come from the environment.
    """

    def __init__(
        self,
        api_key: str,
        base_url: str = "",
        *,
        timeout_s: float = TIMEOUT_S,
        retries: int = RETRIES,
    ) -> None:
        self._key, self._base_url = api_key, (base_url or _OPENAI).rstrip("/")
        self._proxy = proxy_for(self._base_url)
        self._timeout_s, self._retries = timeout_s, retries
        self._urls: dict[str, URL] = {}
        self._session: aiohttp.ClientSession | None = None
        self._abilities: dict[str, Abilities] = {}
        self._queues: dict[str, ModelRequestQueue] = {}

    def abilities(self, model: str) -> Abilities:
        """Returns what `model` is known not to take here."""
        return self._abilities.setdefault(model, Abilities())

    def queue(self, model: str) -> ModelRequestQueue:
        """The queue in front of `model`: providers limit each model by itself."""
        if model not in self._queues:
            self._queues[model] = ModelRequestQueue(model)
        return self._queues[model]

    async def close(self) -> None:
        if self._session:
            await self._session.close()

    @asynccontextmanager
    async def posted(
        self,
        path: str,
        body: bytes,
        *,
        sent_features: Sent = frozenset,
        queue: ModelRequestQueue | None = None,
        waits_s: float = LONGEST_WAIT_S,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The body of the response to a POST as it arrives, once it is the request's turn in
        `queue`, for which it waits `waits_s` at most.

        Raises `ModelFailed` and `Declined`; `FeatureRefused` when the endpoint does not take one of
        the `sent_features` features, `StreamBroken` when the response breaks off while it is read.
        """
        queue, retries = queue or ModelRequestQueue(), self._retries
        with waiting():
            while True:
                async with queue.admitted(waits_s) as admission:
                    response = await self._attempt(path, body)
                    if isinstance(response, aiohttp.ClientResponse):
                        async with response:
                            try:
                                yield _noted(response, admission)
                            except (aiohttp.ClientError, TimeoutError) as exc:
                                raise broken(exc) from exc
                        return
                    pause_s, retries = self._next(response, admission, retries, sent_features)
                await asyncio.sleep(pause_s)

    def _next(
        self,
        response: HttpRefusal | Exception,
        admission: Admission,
        retries: int,
        sent_features: Sent,
    ) -> tuple[float, int]:
        """Returns the seconds to wait before the next attempt and how many are left after it.
        Raises if there is none, or if the wait is longer than the request may take."""
        failure: ModelFailed | Declined
        if isinstance(response, Exception):
            failure, pause_s, goes_on = failure_of(response), self._pause_s(retries), retries > 0
        elif feature := refused_feature(response.status, response.body, sent_features()):
            raise FeatureRefused(feature)
        else:
            failure, pause_s = response.failure(), response.retry_after_s
            if self._retries and response.is_too_many and admission.refused(pause_s):
                retries, goes_on = retries + 1, True  # this attempt does not count
            else:
                pause_s = pause_s or self._pause_s(retries)
                goes_on = retries > 0 and response.may_pass
        if not goes_on or pause_s >= time_left():
            raise failure
        return pause_s, retries - 1

    def _pause_s(self, retries: int) -> float:
        """The pause before an attempt: longer each time, and never the same for all who wait."""
        pause_s = min(_FIRST_PAUSE_S * 2.0 ** (self._retries - retries), _LONGEST_PAUSE_S)
        return pause_s * random.uniform(0.75, 1)  # noqa: S311  no secret

    async def _attempt(
        self, path: str, body: bytes
    ) -> aiohttp.ClientResponse | HttpRefusal | Exception:
        """The response if it has begun well, else what came in its place."""
        if (url := self._urls.get(path)) is None:
            url = self._urls[path] = URL(self._base_url + path)
        try:
            response = await self._opened().post(url, data=body, proxy=self._proxy)
            if response.status in _SUCCESS:
                return response
            async with response:
                return await _refusal(response)
        except (aiohttp.ClientError, OSError) as exc:
            return exc
        except ValueError as exc:  # no header can carry the key
            raise ModelFailed("wrong_key") from exc

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            secure = self._base_url.lower().startswith("https:")
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    ssl=trusted() if secure else True,
                    limit=_CONNECTIONS,
                    keepalive_timeout=_KEEPALIVE_S,
                ),
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=self._timeout_s, sock_read=self._timeout_s
                ),
                headers={
                    "Authorization": f"Bearer {self._key}",
                    "Accept": "application/json",
                    "Content-Type": "application/json",
                    "User-Agent": "feishu-memory-bot",
                },
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session


async def _noted(response: aiohttp.ClientResponse, admission: Admission) -> AsyncIterator[bytes]:
    """The body; `admission` is told when it begins. Some servers send headers long before that."""
    async for piece in response.content.iter_any():
        admission.answered()
        yield piece


async def _refusal(response: aiohttp.ClientResponse) -> HttpRefusal:
    """The response, its status not being 2xx; an endless page is cut."""
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > _MAX_REFUSAL_BYTES:
            response.close()
            break
    return HttpRefusal(response.status, response.headers, bytes(body[:_MAX_REFUSAL_BYTES]))
