"""One HTTP exchange with Feishu over pooled keep-alive connections and one TLS context. Paces them:
at most so many calls per second and key, in order; keys never wait for each other.

lark-oapi is not used here: it opens a connection per call, and a TLS handshake with each.

Source: Feishu, "Send message" (5 a second per chat, shared by all bots in it; 50 a second per app),
"Update card" (5 a second per message), "Streaming updates" (10 operations a second per card).

The limits hold for all workers together: those of one machine take their slots from one file, and
each machine keeps to its share. No call waits for an answer about its slot.
"""

import asyncio
import fcntl
import json
import math
import mmap
import os
import ssl
import struct
import time
import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlencode

import aiohttp
import orjson
from yarl import URL

from bot.feishu.errors import ResourceTooLarge, Unreachable
from bot.process.concurrency import FewestTurnsQueue
from memory.certificates import trusted_certificates

CONCURRENCY = 256  # at Feishu's limits a slow Feishu needs as many
_KEPT_S = 60.0  # people pause between questions; a new connection is a new TLS handshake
_MAX_JSON_BYTES = 16 * 1024 * 1024
_HEADERS = {"User-Agent": "feishu-memory-bot", "Accept-Encoding": "gzip, deflate"}
_JSON = {"Content-Type": "application/json; charset=utf-8"}
_FIELDS = {"Content-Type": "application/x-www-form-urlencoded"}


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds to connect, and between two reads."""

    connect_s: float = 2.0
    read_s: float = 10.0


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """`path` starts with a slash; `body` is sent as JSON, `form` as multipart: texts, and bytes
    as a file; `fields` as a form of the web (OAuth wants that). `max_bytes` bounds the answer.

    `api` names what Feishu limits for the whole app and counts; "", the token, is neither.
    """

    method: str
    path: str
    query: Mapping[str, str | int] = field(default_factory=dict)
    body: Mapping[str, Any] | None = field(default=None, repr=False)
    form: Mapping[str, str | bytes] | None = field(default=None, repr=False)
    fields: Mapping[str, str] | None = field(default=None, repr=False)
    max_bytes: int = _MAX_JSON_BYTES
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    api: str = ""


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """An HTTP answer, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Transport:
    """Sends requests to one Feishu domain, from the event loop of the first; `close` when done.

    It ignores the environment, keeps no cookies and follows no redirects.
    """

    def __init__(self, domain: str, *, timeouts: Timeouts | None = None) -> None:
        self._domain = domain.rstrip("/")
        self._timeouts = timeouts or Timeouts()
        self._session: aiohttp.ClientSession | None = None

    async def send(self, request: ApiRequest, token: str = "") -> ApiResponse:
        """Send and read the whole answer. Raises Unreachable or ResourceTooLarge."""
        try:
            form = None if request.form is None else _multipart(request.form)
            data = _encode_body(request)
            async with self._open_session().request(
                request.method,
                self._url(request),
                headers=_headers(request, token) | (dict(form.headers) if form else {}),
                data=form or data,
                allow_redirects=False,
                middlewares=_WITHOUT_RETRY if request.method in _REPEATED else (),
            ) as answer:
                return await _read(answer, request.max_bytes)
        except (aiohttp.ClientError, OSError, ValueError) as exc:
            # Only the class: the message of a URL or header error may quote what was sent.
            raise _unreachable(exc) from exc

    async def close(self) -> None:
        """Close the connections; exchanges that still run are Unreachable."""
        if self._session:
            await self._session.close()

    def _open_session(self) -> aiohttp.ClientSession:
        """The session, made when it is first needed: it belongs to the loop that runs then."""
        if self._session is None:
            secure = self._domain.lower().startswith("https:")
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    ssl=_tls() if secure else True,
                    limit=CONCURRENCY,
                    keepalive_timeout=_KEPT_S,
                ),
                timeout=aiohttp.ClientTimeout(
                    total=None,
                    sock_connect=self._timeouts.connect_s,
                    sock_read=self._timeouts.read_s,
                ),
                headers=_HEADERS,
                skip_auto_headers=("Accept", "Content-Type"),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    def _url(self, request: ApiRequest) -> URL:
        query = f"?{urlencode(request.query)}" if request.query else ""
        return URL(f"{self._domain}{request.path}{query}", encoded=True)


def _encode_body(request: ApiRequest) -> bytes | None:
    """The body of a request that is no multipart one."""
    if request.fields is not None:
        return urlencode(request.fields).encode()
    return None if request.body is None else encode(request.body)


def encode(body: Mapping[str, Any]) -> bytes:
    """`body` as compact UTF-8 JSON: Feishu's limits count the bytes of the request body.

    Lone halves of characters become "?".
    """
    try:
        return orjson.dumps(body)
    except TypeError:
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


def _multipart(form: Mapping[str, str | bytes]) -> aiohttp.MultipartWriter:
    """A file needs some file name; Feishu takes the one in the field `file_name`."""
    writer = aiohttp.MultipartWriter("form-data")
    for name, value in form.items():
        part = writer.append(value)
        if isinstance(value, bytes):
            part.set_content_disposition("form-data", name=name, filename="file")
        else:
            part.set_content_disposition("form-data", name=name)
    return writer


def _tls() -> ssl.SSLContext:
    """One context for all connections: loading the CA bundle costs 16 ms."""
    context = trusted_certificates()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _headers(request: ApiRequest, token: str) -> dict[str, str]:
    headers = dict(request.headers)
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if request.fields is not None:
        return headers | _FIELDS
    return headers if request.body is None else headers | _JSON


async def _retry_never(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Keeps aiohttp from repeating what may have arrived: whether to repeat, the caller knows."""
    try:
        return await handler(request)
    except aiohttp.ClientConnectionError as exc:
        raise _unreachable(exc) from exc


# Only these are ever repeated by aiohttp, and a middleware costs as much as the request's headers.
_REPEATED = frozenset(("GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"))
_WITHOUT_RETRY = (_retry_never,)


def _unreachable(exc: Exception) -> Unreachable:
    """Where no connection came about, nothing was done."""
    no_connection = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
    return Unreachable(type(exc).__name__, maybe_done=not isinstance(exc, no_connection))


async def _read(answer: aiohttp.ClientResponse, max_bytes: int) -> ApiResponse:
    """The answer with its body, which must be read to the end for the connection to be reused."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in answer.content.iter_any():
        size += len(chunk)
        if size > max_bytes:
            answer.close()
            raise ResourceTooLarge(max_bytes)
        chunks.append(chunk)
    return ApiResponse(answer.status, answer.headers, b"".join(chunks))


# The platform counts arrivals, which the network may push closer together than departures.
_WINDOW_S = 1.05
_SWEEP_AT = 1024
_MOST = 10  # slots remembered of one key; no limit is higher
_KEYS = 8192
_FUTURE_S = 600.0  # further ahead than anybody waits: of another boot's clock

_PLACE = struct.Struct(f"=q{_MOST}d")


def next_slot(
    slots: tuple[float, ...], now: float, limit: int, window_s: float = _WINDOW_S
) -> tuple[tuple[float, ...], float]:
    """The last slots with the next one taken, and the seconds to wait until it.

    No window of `window_s` seconds ever holds more than `limit` slots, bursts included.
    """
    earliest = slots[-limit] + window_s if len(slots) >= limit else now
    slot = max(now, earliest, slots[-1] if slots else now)
    return (*slots[-(_MOST - 1) :], slot), slot - now


def shared_limit(limit: int, share: float, window_s: float = _WINDOW_S) -> tuple[int, float]:
    """What is left of `limit` calls in a window for one of several senders: (calls, window).

    Less than one call in a window is one in a longer window.
    """
    mine = limit * share
    return (math.floor(mine), window_s) if mine >= 1 else (1, window_s / mine)


class Slots(Protocol):
    """When the calls of each key left or will leave, on the machine's monotonic clock."""

    def take(
        self, key: str, now: float, limit: int, window_s: float, *, later: bool = True
    ) -> float:
        """The seconds to wait until the next slot, which is taken; unless `later`, only if these
        are 0."""
        ...


class OwnSlots:
    """Of this process alone."""

    def __init__(self) -> None:
        self._slots: dict[str, tuple[float, ...]] = {}

    def take(
        self, key: str, now: float, limit: int, window_s: float, *, later: bool = True
    ) -> float:
        self._forget_idle(now - window_s)
        taken_slots, wait_s = next_slot(self._slots.get(key, ()), now, limit, window_s)
        if later or wait_s <= 0:
            self._slots[key] = taken_slots
        return wait_s

    def _forget_idle(self, before: float) -> None:
        if len(self._slots) >= _SWEEP_AT:
            self._slots = {k: s for k, s in self._slots.items() if s[-1] > before}


class SharedSlots:
    """Of all processes that open `file`. A place per hash of a key: two keys that meet in one
    wait for each other, which is rare and breaks no limit."""

    def __init__(self, file: Path) -> None:
        self._file = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(self._file, _KEYS * _PLACE.size)
        self._slots = mmap.mmap(self._file, _KEYS * _PLACE.size)

    def take(
        self, key: str, now: float, limit: int, window_s: float, *, later: bool = True
    ) -> float:
        at = zlib.crc32(key.encode()) % _KEYS * _PLACE.size
        fcntl.flock(self._file, fcntl.LOCK_EX)  # held for microseconds; a killed holder's is freed
        try:
            count, *shared_slots = _PLACE.unpack_from(self._slots, at)
            slots = tuple([s for s in shared_slots[:count] if s < now + _FUTURE_S])
            taken_slots, wait_s = next_slot(slots, now, limit, window_s)
            if later or wait_s <= 0:
                empty_slots = (0.0,) * (_MOST - len(taken_slots))
                _PLACE.pack_into(self._slots, at, len(taken_slots), *taken_slots, *empty_slots)
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        return wait_s


@dataclass
class SharedPace:
    """What all pacers of a process go by. `share`: the part of each limit that is this machine's,
    above 0 and up to 1; it may change at any time."""

    slots: Slots = field(default_factory=OwnSlots)
    share: float = 1.0


class Pacer:
    """Waits for a key's turn: `limit` calls, at most ten, in any `window_s` seconds.

    `name` tells its keys from those of other pacers.
    """

    def __init__(
        self,
        name: str,
        limit: int,
        pace: SharedPace,
        *,
        window_s: float = _WINDOW_S,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._name = name
        self._limit = limit
        self._pace = pace
        self._window_s = window_s
        self._clock = clock
        self._sleep = sleep

    async def turn(self, key: str, whose: str = "") -> None:
        """Return when a call for `key` may leave; turns are handed out in the order asked."""
        wait_s = self._take(key, self._limit)
        if wait_s > 0:
            await self._sleep(wait_s)

    def _take(self, key: str, limit: int, *, later: bool = True) -> float:
        calls, window_s = shared_limit(limit, self._pace.share, self._window_s)
        now = self._clock()
        return self._pace.slots.take(f"{self._name}:{key}", now, calls, window_s, later=later)


class FairPacer(Pacer):
    """A pacer that nobody uses up alone: whoever has had half of a window's calls leaves the rest
    of them to the others. Whoever has had the fewest of late comes first."""

    def __init__(self, name: str, limit: int, pace: SharedPace, **seams: Any) -> None:
        super().__init__(name, limit, pace, **seams)
        self._half = -(-limit // 2)
        self._lines: dict[tuple[str, bool], FewestTurnsQueue] = {}

    async def turn(self, key: str, whose: str = "") -> None:
        """Return when a call of `whose` for `key` may leave."""
        own = f"{key} {whose}"
        has_many = self._take(own, self._half, later=False) > 0
        line = self._lines.setdefault((key, has_many), FewestTurnsQueue(self._clock))
        await line.enter(whose)
        try:
            while (wait_s := self._take(key, self._most(has_many), later=False)) > 0:
                await self._sleep(wait_s)
            if has_many:
                self._take(own, _MOST)  # it counts for them all the same
        finally:
            line.leave()

    def _most(self, has_many: bool) -> int:
        """How many calls of anybody leave in a window."""
        return self._half if has_many else self._limit


def per_second_pacer(name: str, calls: int, pace: SharedPace, **seams: Any) -> Pacer:
    """A pacer for a limit higher than ten: the same rate in a shorter window, so without bursts."""
    return Pacer(name, _MOST, pace, window_s=_WINDOW_S * _MOST / calls, **seams)


def fractional_pacer(name: str, calls: int, of: int, pace: SharedPace, **seams: Any) -> Pacer:
    """A pacer for one call in every `of` of a limit of `calls` a second."""
    limit = min(max(calls // of, 1), _MOST)
    return Pacer(name, limit, pace, window_s=_WINDOW_S * limit * of / calls, **seams)
