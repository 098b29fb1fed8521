"""One POST to an endpoint of models over pooled aiohttp connections, and what comes back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from urllib.request import getproxies

import aiohttp
from yarl import URL

from bot.agents.llm.model import ModelFailed, StreamBroken
from bot.agents.llm.trusted_certificates import trusted

_CONNECTIONS = 1000
_KEPT_S = 30.0  # people pause between questions; a new connection is a new TLS handshake
_MAX_REFUSAL_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class HttpReply:
    """An answer with status 2xx: its media type, and its body, whole or as it arrives."""

    kind: str
    read: Callable[[], Awaitable[bytes]]
    chunks: Callable[[], AsyncIterator[bytes]]

    def noting(self, begun: Callable[[], None], *, at_once: bool) -> HttpReply:
        """The same; `begun` is called now, or when its first piece is here: some servers answer
        at once and begin to write later."""
        if at_once:
            begun()
            return self

        async def read() -> bytes:
            whole = await self.read()
            begun()
            return whole

        async def chunks() -> AsyncIterator[bytes]:
            async for piece in self.chunks():
                begun()
                yield piece

        return HttpReply(self.kind, read, chunks)


@dataclass(frozen=True, slots=True)
class HttpRefusal:
    """An answer with another status, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Poster:
    """Posts JSON to one base URL, from the event loop of the first request; `close` when done.

    `timeout_s` is for connecting and for each wait for more of an answer. Proxies come from the
    environment, as everywhere.
    """

    def __init__(self, api_key: str, base_url: str, *, timeout_s: float) -> None:
        self._base_url = base_url.rstrip("/")
        self._timeout_s = timeout_s
        self._headers = {
            "Authorization": f"Bearer {api_key}",
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": "feishu-memory-bot",
        }
        self._urls: dict[str, URL] = {}
        self._session: aiohttp.ClientSession | None = None

    async def post(self, path: str, body: bytes) -> aiohttp.ClientResponse:
        """The answer as soon as it begins; whoever asked releases it.

        Raises `aiohttp.ClientError` and `OSError`; `ValueError` for a key that no header can carry.
        """
        if (url := self._urls.get(path)) is None:
            url = self._urls[path] = URL(self._base_url + path)
        return await self._opened().post(url, data=body)

    async def close(self) -> None:
        if self._session:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            secure = self._base_url.lower().startswith("https:")
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    ssl=trusted() if secure else True,
                    limit=_CONNECTIONS,
                    keepalive_timeout=_KEPT_S,
                ),
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=self._timeout_s, sock_read=self._timeout_s
                ),
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=bool(getproxies()),  # looking for proxies costs as much as the request
            )
        return self._session


def broken(exc: Exception) -> ModelFailed:
    """What it means that an answer broke off with `exc`."""
    return ModelFailed("timeout") if timed_out(exc) else StreamBroken("connection")


def timed_out(exc: BaseException | None) -> bool:
    """Whether waiting caused it; some transports call a refused connection a timeout too."""
    while exc is not None:
        if isinstance(exc, TimeoutError):
            return True
        exc = exc.__cause__
    return False


def reply(answer: aiohttp.ClientResponse) -> HttpReply:
    """`answer`, its status being 2xx."""
    return HttpReply(answer.headers.get("Content-Type", ""), answer.read, answer.content.iter_any)


async def refused(answer: aiohttp.ClientResponse) -> HttpRefusal:
    """What else `answer` is; an endless page is cut."""
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece
        if len(body) > _MAX_REFUSAL_BYTES:
            answer.close()
            break
    return HttpRefusal(answer.status, answer.headers, bytes(body[:_MAX_REFUSAL_BYTES]))
