"""One HTTP exchange with Feishu over pooled keep-alive connections and one TLS context.

lark-oapi is not used here: it opens a connection per call, and a TLS handshake with each.
"""

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import aiohttp
import certifi
import orjson
from yarl import URL

from bot.feishu.errors import ResourceTooLarge, Unreachable

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
    context = ssl.create_default_context(cafile=certifi.where())
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
