"""Sends requests to an OpenAI-compatible endpoint; they queue while the endpoint has as many as it
takes.

The chats take turns. While a request waits, the time limits of its turn stand still, so one that
waited long is not given up as soon as it is its turn."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
import structlog
from yarl import URL

from bot.agents.llm.model import (
    Declined,
    Feature,
    FeatureRefused,
    HttpRefusal,
    ModelFailed,
    ToolRefused,
    broken_response,
    failure_of,
    refused_feature,
    refused_tools,
)
from bot.agents.llm.requests import Abilities
from bot.agents.running_turns import paused_time_limits, time_left
from bot.process import metrics
from bot.process.concurrency import RoundRobinQueue, chat_of_job, without_slot
from memory.certificates import trusted_certificates
from memory.proxies import proxy_for

log = structlog.get_logger()
LONGEST_WAIT_S = 300.0
_LOG_EVERY_S = 10.0
_LOOK_EVERY_S = 1.0

# After a refusal nobody asks for so long, whatever Retry-After says: that is for the one refused.
_SHORTEST_QUEUE_PAUSE_S, _LONGEST_QUEUE_PAUSE_S = 0.5, 1.0
_KEPT_OF_REFUSED, _FEW = 0.9, 4.0
_KEPT_OF_LATE, _LEAST_LATE = 0.7, 8.0
_GROWTH = 0.1
_FORGOTTEN_S = 60.0
_LATE_S, _TIMES_USUAL, _USUAL_FOLLOWS = 10.0, 3.0, 0.05
_TAKEN_S = 5.0  # a refusal comes sooner

TIMEOUT_S = 60.0
RETRIES = 2
_SUCCESS = range(200, 300)
_OPENAI = "https://api.openai.com/v1"
_CONNECTIONS = 1000
_KEEPALIVE_S = 30.0  # people pause between questions; a new connection is a new TLS handshake
_MAX_REFUSAL_BYTES = 1024 * 1024
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 8.0
Sent = Callable[[], Collection[Feature]]


class RequestLimit:
    """Learns how many requests a model takes at the same time. Pure; `clock` is monotonic seconds.

    There is no limit until the model shows one. A refusal with status 429 says that it holds no
    more than what is under way, so the limit follows that, but a first refusal leaves a few: it may
    be about one request alone. Answers that begin much later than usual lower it gently. Each
    answer raises it, by a tenth with all that are under way, and so does each second without a
    refusal while others wait. A minute without trouble lifts it, for most providers count by the
    minute. A model that answers nobody has no limit: its requests fail by their own time limits.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._most = math.inf
        self._troubled_at = self._hopes_until = -math.inf
        self._usual_s: float | None = None
        self._was_refused = False

    def most(self, oldest_at: float | None) -> float:
        """Returns how many may be under way. `oldest_at` is when the oldest of those was sent."""
        is_lifted = self._clock() - self._troubled_at > _FORGOTTEN_S
        if self._most < math.inf and (is_lifted or not self._is_hopeful(oldest_at)):
            self._most = math.inf
        return self._most

    def note_answer(self, sent_at: float, in_flight: int, *, was_crowded: bool) -> None:
        """An answer has begun to what was sent then; `was_crowded`: others wait for their turn."""
        now = self._clock()
        after_s = now - sent_at
        if self._usual_s is not None and after_s > self._late_s and sent_at > self._troubled_at:
            self._lower(max(_LEAST_LATE, min(self._most, in_flight) * _KEPT_OF_LATE))
            self._was_refused = False
        elif was_crowded or in_flight >= self._most - 1:
            self._most += max(1.0, self._most * _GROWTH) / self._most
        self._learn(after_s)
        self._hopes_until = now + self._late_s

    def note_refusal(self, others: int, oldest_at: float | None) -> bool:
        """The model has too many requests, with `others` under way, the oldest sent at that time.
        Whether another attempt is worth the wait."""
        now = self._clock()
        if now - self._troubled_at > _FORGOTTEN_S:
            self._hopes_until = max(self._hopes_until, now + self._late_s)
        self._lower(max(_FEW if self._most == math.inf else 1.0, others * _KEPT_OF_REFUSED))
        self._was_refused = True
        return self._is_hopeful(oldest_at)

    def try_more(self) -> None:
        """Lets one more request through if none was refused for a second."""
        if self._was_refused and self._clock() - self._troubled_at >= _LOOK_EVERY_S:
            self._most += 1

    def _is_hopeful(self, oldest_at: float | None) -> bool:
        """True if a request was answered lately, or will be."""
        now = self._clock()
        held_s = 0.0 if oldest_at is None else now - oldest_at
        longest_s = math.inf if self._usual_s is None else self._late_s
        return now < self._hopes_until or _TAKEN_S < held_s < longest_s

    @property
    def _late_s(self) -> float:
        return max(_LATE_S, _TIMES_USUAL * (self._usual_s or 0.0))

    def _learn(self, after_s: float) -> None:
        """The shortest time until an answer begins, which follows longer ones slowly."""
        if self._usual_s is None or after_s < self._usual_s:
            self._usual_s = after_s
        else:
            self._usual_s += (after_s - self._usual_s) * _USUAL_FOLLOWS

    def _lower(self, most: float) -> None:
        self._troubled_at = self._clock()
        self._most = min(self._most, most)


class ModelRequestQueue:
    """The queue in front of the model `name`. For one event loop; `clock` is monotonic seconds."""

    def __init__(self, name: str = "", *, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._clock = clock
        self._limit = RequestLimit(clock)
        self._line = RoundRobinQueue(self._leave)
        self._in_flight = 0
        self._under_way: dict[Admission, float] = {}
        self._reopens: asyncio.TimerHandle | None = None
        self._looks: asyncio.TimerHandle | None = None
        self._logged_at = -_LOG_EVERY_S

    @asynccontextmanager
    async def admit(self, waits_s: float = LONGEST_WAIT_S) -> AsyncIterator[Admission]:
        """One request, when it is its turn. Raises `ModelFailed` after `waits_s` of waiting."""
        await self._enter(waits_s)
        admission, sent_at = Admission(self), self._clock()
        self._under_way[admission] = sent_at
        try:
            with metrics.MODEL_REQUESTS.track_inprogress():
                yield admission
        finally:
            del self._under_way[admission]
            self._leave()

    def note_answer(self, admission: Admission) -> None:
        """The answer to a request has begun."""
        sent_at = self._under_way[admission]
        self._limit.note_answer(sent_at, self._in_flight, was_crowded=bool(self._line))
        self._call()

    def note_refusal(self, admission: Admission, retry_after_s: float) -> bool:
        """The model has too many requests. Whether another attempt is worth the wait; nobody asks
        it for up to a second then."""
        others = self._in_flight - 1
        if not self._limit.note_refusal(others, self._oldest(but=admission)):
            self._call()
            return False
        if self._clock() - self._logged_at >= _LOG_EVERY_S:
            self._logged_at = self._clock()
            log.warning("model.limited", model=self._name, in_flight=others)
        if self._reopens is None:
            pause_s = min(max(retry_after_s, _SHORTEST_QUEUE_PAUSE_S), _LONGEST_QUEUE_PAUSE_S)
            self._reopens = asyncio.get_running_loop().call_later(pause_s, self._reopen)
        return True

    async def _enter(self, waits_s: float) -> None:
        if self._has_room() and not self._line:
            self._in_flight += 1
            return
        with metrics.MODEL_WAITING.track_inprogress(), paused_time_limits():
            self._look_later()
            try:
                async with asyncio.timeout(waits_s):
                    await self._line.wait(chat_of_job())  # whoever calls has counted this one
            except TimeoutError as exc:
                raise ModelFailed("rate_limited") from exc

    def _has_room(self) -> bool:
        return self._reopens is None and self._in_flight + 1 <= self._limit.most(self._oldest())

    def _oldest(self, but: Admission | None = None) -> float | None:
        """When the oldest of the requests under way was sent."""
        return next((at for one, at in self._under_way.items() if one is not but), None)

    def _leave(self) -> None:
        self._in_flight -= 1
        self._call()

    def _call(self) -> None:
        while self._line and self._has_room():
            self._in_flight += self._line.call_next()

    def _reopen(self) -> None:
        self._reopens = None
        self._call()

    def _look_later(self) -> None:
        """A limit can be raised or lifted while nothing comes and goes."""
        if self._looks is None:
            self._looks = asyncio.get_running_loop().call_later(_LOOK_EVERY_S, self._look)

    def _look(self) -> None:
        self._looks = None
        self._limit.try_more()
        self._call()
        if self._line:
            self._look_later()


class Admission:
    """A request on its way to the model."""

    __slots__ = ("_answered", "_queue")

    def __init__(self, queue: ModelRequestQueue) -> None:
        self._queue = queue
        self._answered = False

    def note_answer(self) -> None:
        """The answer has begun."""
        if not self._answered:
            self._answered = True
            self._queue.note_answer(self)

    def note_refusal(self, retry_after_s: float) -> bool:
        """As `ModelRequestQueue.refused`."""
        return self._queue.note_refusal(self, retry_after_s)


"""Gives the features of a request that an endpoint could refuse."""


@dataclass(slots=True)
class _Attempts:
    """How many attempts a request has left after the one that runs. Time limits stand
    still in the queue, so the pauses, which they count, must grow: else who is refused alone,
    without being told for how long, would ask for ever."""

    attempts_left: int
    _pauses: int = 0

    def next_pause_s(self) -> float:
        """Takes an attempt. The pause before it is longer each time, and never the same for all who
        wait."""
        pause_s = min(_FIRST_PAUSE_S * 2.0**self._pauses, _LONGEST_PAUSE_S)
        self.attempts_left, self._pauses = self.attempts_left - 1, self._pauses + 1
        return pause_s * random.uniform(0.75, 1)  # noqa: S311  no secret


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
    async def post(
        self,
        path: str,
        body: bytes,
        *,
        sent_features: Sent = frozenset,
        tools: Sequence[str] = (),
        queue: ModelRequestQueue | None = None,
        waits_s: float = LONGEST_WAIT_S,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The body of the response to a POST as it arrives, once it is the request's turn in
        `queue`, for which it waits `waits_s` at most.

        Raises `ModelFailed` and `Declined`; `FeatureRefused` when the endpoint does not take one of
        the `sent_features` features, `ToolRefused` for some of the `tools`, `StreamBroken` when the
        response breaks off while it is read.
        """
        queue, attempts = queue or ModelRequestQueue(), _Attempts(self._retries)
        with without_slot():
            while True:
                async with queue.admit(waits_s) as admission:
                    response = await self._attempt(path, body)
                    if isinstance(response, aiohttp.ClientResponse):
                        async with response:
                            try:
                                yield _note_bytes(response, admission)
                            except (aiohttp.ClientError, TimeoutError) as exc:
                                raise broken_response(exc) from exc
                        return
                    pause_s = self._pause_s(response, admission, attempts, sent_features, tools)
                await asyncio.sleep(pause_s)

    def _pause_s(
        self,
        response: HttpRefusal | Exception,
        admission: Admission,
        attempts: _Attempts,
        sent_features: Sent,
        tools: Sequence[str],
    ) -> float:
        """Returns the seconds to wait before the next attempt. Raises if there is none, or if the
        wait is longer than the request may take."""
        failure: ModelFailed | Declined
        wish_s, goes_on = 0.0, attempts.attempts_left > 0
        if isinstance(response, Exception):
            failure = failure_of(response)
        elif names := refused_tools(response.status, response.body, tools):
            raise ToolRefused(names)
        elif feature := refused_feature(response.status, response.body, sent_features()):
            raise FeatureRefused(feature)
        else:
            failure, wish_s = response.failure(), response.retry_after_s
            goes_on = goes_on and response.may_pass
            if self._retries and response.is_too_many and admission.note_refusal(wish_s):
                attempts.attempts_left, goes_on = (
                    attempts.attempts_left + 1,
                    True,
                )  # this attempt does not count
        pause_s = max(wish_s, attempts.next_pause_s())
        if not goes_on or pause_s >= time_left():
            raise failure
        return pause_s

    async def _attempt(
        self, path: str, body: bytes
    ) -> aiohttp.ClientResponse | HttpRefusal | Exception:
        """The response if it has begun well, else what came in its place."""
        if (url := self._urls.get(path)) is None:
            url = self._urls[path] = URL(self._base_url + path)
        try:
            response = await self._open_session().post(url, data=body, proxy=self._proxy)
            if response.status in _SUCCESS:
                return response
            async with response:
                return await _refusal(response)
        except (aiohttp.ClientError, OSError) as exc:
            return exc
        except ValueError as exc:  # no header can carry the key
            raise ModelFailed("wrong_key") from exc

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            secure = self._base_url.lower().startswith("https:")
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    ssl=trusted_certificates() if secure else True,
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


async def _note_bytes(
    response: aiohttp.ClientResponse, admission: Admission
) -> AsyncIterator[bytes]:
    """The body; `admission` is told when it begins. Some servers send headers long before that."""
    async for piece in response.content.iter_any():
        admission.note_answer()
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
