"""The long connection: Feishu pushes over a websocket that the bot opens, and keeps opening.

An endpoint tells the address, with a ticket for one connection; then frames travel
(`open_connection`). It needs no public address and no keys, works for custom apps only, and each
message goes to one of the app's connections, of which there may be 50 (source: Feishu, “Receive
events through long connection”).

lark-oapi's client is not used: it binds to one event loop at import, cannot be stopped, calls the
endpoint without a time limit, and logs the address with its secrets.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import ssl
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import certifi
import structlog
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, WebSocketException

from bot.feishu.connection.open_connection import ConnectionTimes, Handler, OpenConnection
from bot.feishu.errors import Action, FeishuError, FeishuFailure, Unreachable, classify
from bot.feishu.transport import ApiRequest, Transport

log = structlog.get_logger()

_ENDPOINT = "/callback/ws/endpoint"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_OPEN_S = 10.0
_CLOSE_S = 2.0
_FLOOR_S = 1.0
_THREADS = 8
_MAX_FRAME_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class GatewayAddress:
    """Where to connect, once. `url` holds an access key and a ticket."""

    url: str = field(repr=False)
    service: int
    connection_id: str


class LongConnection:
    """Keeps one connection open and hands what comes to `handler`, in up to eight threads.

    `pause` waits between attempts (seconds), `chance` gives a number in [0, 1).
    """

    def __init__(
        self,
        transport: Transport,
        app_id: str,
        app_secret: str,
        handler: Handler,
        *,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._transport = transport
        self._credentials = {"AppID": app_id, "AppSecret": app_secret}
        self._handler = handler
        self._pause = pause
        self._chance = chance
        self._pace = ConnectionTimes()
        self._failure = "it is being opened"

    @property
    def failure(self) -> str:
        """Why there is no connection at the moment; "" while there is one."""
        return self._failure

    async def run(self) -> None:
        """Until it is cancelled; whatever ends a connection is logged, and another one made."""
        executor = ThreadPoolExecutor(_THREADS, "long-connection")
        failures = 0
        try:
            while True:
                failures = 0 if await self._attempt(executor) else failures + 1
                delay = reconnect_delay(self._pace, failures, self._chance())
                log.info("long_connection.again", in_s=round(delay, 1), failed=failures)
                await self._pause(delay)
        finally:
            self._failure = "it is stopped"
            executor.shutdown(wait=False, cancel_futures=True)

    async def _attempt(self, executor: ThreadPoolExecutor) -> bool:
        """Connects, and serves as long as it lasts. Whether it had been connected."""
        is_connected = False
        try:
            async with self._opened(executor) as connection:
                is_connected, self._failure = True, ""
                await connection.serve()
        except FeishuFailure as exc:
            self._failure = exc.reason if isinstance(exc, Unreachable) else str(exc)
            event_name = "long_connection.lost" if is_connected else "long_connection.failed"
            log.warning(event_name, reason=self._failure)
        except Exception as exc:  # noqa: BLE001 - its text may hold the ticket: frames only
            self._failure = type(exc).__name__
            stack = "".join(traceback.format_tb(exc.__traceback__))
            log.error("long_connection.failed", error=type(exc).__name__, stack=stack)
        return is_connected

    @asynccontextmanager
    async def _opened(self, executor: ThreadPoolExecutor) -> AsyncIterator[OpenConnection]:
        address = await self._address()
        socket = await _socket(address)
        log.info("long_connection.open", connection_id=address.connection_id)
        connection = OpenConnection(socket, address.service, self._handler, executor, self._pace)
        try:
            yield connection
        finally:
            self._pace = connection.pace
            await socket.close()

    async def _address(self) -> GatewayAddress:
        # The header is what lark-oapi sends; its meaning is not documented.
        request = ApiRequest("POST", _ENDPOINT, body=self._credentials, headers={"locale": "zh"})
        answer = await self._transport.send(request)
        if failure := classify(answer.status, answer.headers, answer.body):
            raise failure
        data = json.loads(answer.body).get("data")
        fields: dict[str, Any] = data if isinstance(data, dict) else {}
        self._pace = self._pace.wished(fields.get("ClientConfig"))
        return address_of(fields.get("URL"))


def address_of(url: object) -> GatewayAddress:
    """The address the endpoint gave. Raises `Unreachable` for one that cannot be used: its secrets
    travel over TLS, or stay on this machine."""
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        query = parse_qs(parts.query)
        service = int(query.get("service_id", ["0"])[0])
    except ValueError as exc:
        raise Unreachable("the endpoint gave a malformed address") from exc
    local = parts.scheme == "ws" and parts.hostname in _LOOPBACK
    if not (parts.scheme == "wss" and parts.hostname) and not local:
        raise Unreachable("the endpoint gave no usable address")
    return GatewayAddress(parts.geturl(), service, query.get("device_id", [""])[0])


def reconnect_delay(pace: ConnectionTimes, failures: int, chance: float) -> float:
    """Seconds until the next attempt. `chance` is in [0, 1).

    After a connection that was lost (`failures` is 0) as much at random as Feishu wishes, so that
    not all clients come back at once; after `failures` attempts in a row twice as long each time,
    up to the interval that Feishu wishes.
    """
    if failures == 0:
        return max(_FLOOR_S, pace.jitter_s * chance)
    longest = min(pace.interval_s, _FLOOR_S * 2.0 ** min(failures, 10))
    return max(_FLOOR_S, longest * (1 + chance) / 2)


async def _socket(address: GatewayAddress) -> ClientConnection:
    """Raises `FeishuError` when Feishu refuses, `Unreachable` when it cannot be reached."""
    secure = address.url.startswith("wss:")
    quiet = logging.getLogger("bot.feishu.websocket")
    quiet.setLevel(logging.WARNING)  # below that the library writes the address with its ticket
    try:
        return await connect(
            address.url,
            ssl=ssl.create_default_context(cafile=certifi.where()) if secure else None,
            compression=None,
            proxy=None,
            user_agent_header="feishu-memory-bot",
            open_timeout=_OPEN_S,
            close_timeout=_CLOSE_S,
            max_size=_MAX_FRAME_BYTES,
            logger=quiet,
        )
    except InvalidStatus as exc:
        raise _refusal(exc) from exc
    except (OSError, WebSocketException) as exc:
        raise Unreachable(type(exc).__name__) from exc


def _refusal(error: InvalidStatus) -> FeishuFailure:
    """Why the handshake failed stands in headers of its answer (source: lark-oapi)."""
    status, headers = error.response.status_code, error.response.headers
    code = headers.get("handshake-autherrcode") or headers.get("handshake-status") or ""
    if not code.isdecimal():
        return Unreachable(f"HTTP {status} instead of a websocket")
    msg = headers.get("handshake-msg", "")[:200]
    return FeishuError(int(code), msg, http_status=status, action=Action.ALERT)
