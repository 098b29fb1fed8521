"""One HTTP exchange with Feishu over pooled keep-alive connections and one TLS context.

Everything that touches the network goes through `Transport.exchange`, so that tests can answer
for Feishu at the session. lark-oapi is not used here: it opens a connection per call.
"""

import asyncio
import json
import ssl
from collections.abc import Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import certifi
import requests
from requests.adapters import HTTPAdapter

from bot.feishu.errors import ResourceTooLarge, Unreachable

CONCURRENCY = 32
_MAX_JSON_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds to connect, and between two reads."""

    connect_s: float = 2.0
    read_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Request:
    """`path` starts with a slash; `body` is sent as JSON. `max_bytes` bounds the answer.

    `api` names what Feishu limits for the whole app; "" is not paced.
    """

    method: str
    path: str
    query: Mapping[str, str | int] = field(default_factory=dict)
    body: Mapping[str, Any] | None = field(default=None, repr=False)
    max_bytes: int = _MAX_JSON_BYTES
    headers: Mapping[str, str] = field(default_factory=dict)
    api: str = ""


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP answer, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _SharedContextAdapter(HTTPAdapter):
    """Keep-alive connections which share one TLS context: loading the CA bundle costs 16 ms."""

    def __init__(self, pool_maxsize: int) -> None:
        self._context = ssl.create_default_context(cafile=certifi.where())
        super().__init__(pool_connections=4, pool_maxsize=pool_maxsize, pool_block=False)

    def init_poolmanager(
        self, connections: int, maxsize: int, block: bool = False, **pool_kwargs: Any
    ) -> None:
        pool_kwargs["ssl_context"] = self._context
        super().init_poolmanager(connections, maxsize, block=block, **pool_kwargs)

    def proxy_manager_for(self, proxy: str, **proxy_kwargs: Any) -> Any:
        proxy_kwargs["ssl_context"] = self._context
        return super().proxy_manager_for(proxy, **proxy_kwargs)

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """Require a certificate, but do not load the CA bundle again for each connection."""
        conn.cert_reqs = "CERT_REQUIRED" if url.lower().startswith("https") else "CERT_NONE"


def pooled_session(concurrency: int = CONCURRENCY) -> requests.Session:
    """A session that ignores the environment and keeps `concurrency` connections per host."""
    session = requests.Session()
    session.trust_env = False
    adapter = _SharedContextAdapter(concurrency)
    session.mount("https://", adapter)
    session.mount("http://", adapter)
    return session


class Transport:
    """Sends requests to one Feishu domain. Closes only what it made itself."""

    def __init__(
        self,
        domain: str,
        *,
        session: requests.Session | None = None,
        executor: Executor | None = None,
        timeouts: Timeouts | None = None,
        proxies: Mapping[str, str] | None = None,
    ) -> None:
        self._domain = domain.rstrip("/")
        self._timeouts = timeouts or Timeouts()
        self._proxies = dict(proxies or {})
        self._session = session or pooled_session()
        self._executor = executor or ThreadPoolExecutor(CONCURRENCY, "feishu")
        self._owns_session, self._owns_executor = session is None, executor is None

    async def send(self, request: Request, token: str = "") -> Response:
        """`exchange`, off the event loop."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, self.exchange, request, token)

    def exchange(self, request: Request, token: str = "") -> Response:
        """Send and read the whole answer. Raises Unreachable or ResourceTooLarge."""
        try:
            answer = self._session.send(
                self._prepared(request, token),
                timeout=(self._timeouts.connect_s, self._timeouts.read_s),
                proxies=self._proxies,
                allow_redirects=False,
                stream=True,
            )
            return _read(answer, request.max_bytes)
        except (requests.RequestException, OSError) as exc:
            # Only the class: the message of a proxy or URL error may quote what was sent.
            raise Unreachable(type(exc).__name__) from exc

    def _prepared(self, request: Request, token: str) -> requests.PreparedRequest:
        headers = {"User-Agent": "feishu-memory-bot", "Accept-Encoding": "gzip, deflate"}
        headers |= request.headers
        if token:
            headers["Authorization"] = f"Bearer {token}"
        body: bytes | None = None
        if request.body is not None:
            headers["Content-Type"] = "application/json; charset=utf-8"
            body = encode(request.body)
        url = f"{self._domain}{request.path}"
        return requests.Request(
            request.method, url, headers=headers, params=dict(request.query), data=body
        ).prepare()

    def close(self) -> None:
        """Close the connections and threads made here; running exchanges end by themselves."""
        if self._owns_executor:
            self._executor.shutdown(wait=False, cancel_futures=True)
        if self._owns_session:
            self._session.close()


def encode(body: Mapping[str, Any]) -> bytes:
    """`body` as compact UTF-8 JSON: Feishu's limits count the bytes of the request body."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _read(answer: requests.Response, max_bytes: int) -> Response:
    """The answer with its body, which must be read to the end for the connection to be reused."""
    chunks: list[bytes] = []
    size = 0
    for chunk in answer.iter_content(64 * 1024):
        size += len(chunk)
        if size > max_bytes:
            answer.close()
            raise ResourceTooLarge(max_bytes)
        chunks.append(chunk)
    return Response(answer.status_code, answer.headers, b"".join(chunks))
