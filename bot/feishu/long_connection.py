"""Keeps a websocket to Feishu open, and acknowledges the messages that come through it.

Feishu wants each message acknowledged within 3 s and pushes it again otherwise. A connection
that went silent counts as lost. lark-oapi's client is not used: it binds to one event loop at
import, cannot be stopped, and logs the address with its secrets. Source: Feishu, “Receive
events through long connection”."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import random
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import structlog
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.connection import Connection
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from bot.feishu import frames
from bot.feishu.errors import Action, FeishuError, FeishuFailure, Unreachable, classify
from bot.feishu.frames import CONTROL_METHOD, DATA_METHOD, Frame, FrameAssembly, MalformedFrame
from bot.feishu.transport import ApiRequest, Transport
from memory.certificates import trusted_certificates

log = structlog.get_logger()
_ENDPOINT = "/callback/ws/endpoint"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_OPEN_S = 10.0
_CLOSE_S = 2.0
_FLOOR_S = 1.0
_THREADS = 8
_MAX_FRAME_BYTES = 4 * 1024 * 1024

ACK_LIMIT_S = 2.5
_SILENCE_S = 15.0
_MOST_AT_ONCE = 64


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
        handler: MessageHandler,
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
            async with self._open(executor) as connection:
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
    async def _open(self, executor: ThreadPoolExecutor) -> AsyncIterator[OpenConnection]:
        address = await self._address()
        socket = await _open_socket(address)
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


async def _open_socket(address: GatewayAddress) -> ClientConnection:
    """Raises `FeishuError` when Feishu refuses, `Unreachable` when it cannot be reached."""
    secure = address.url.startswith("wss:")
    quiet = logging.getLogger("bot.feishu.websocket")
    quiet.setLevel(logging.WARNING)  # below that the library writes the address with its ticket
    try:
        return await connect(
            address.url,
            ssl=trusted_certificates() if secure else None,
            compression=None,
            proxy=None,
            user_agent_header="feishu-memory-bot",
            open_timeout=_OPEN_S,
            close_timeout=_CLOSE_S,
            max_size=_MAX_FRAME_BYTES,
            logger=quiet,
        )
    except InvalidStatus as exc:
        raise _handshake_failure(exc) from exc
    except (OSError, WebSocketException) as exc:
        raise Unreachable(type(exc).__name__) from exc


def _handshake_failure(error: InvalidStatus) -> FeishuFailure:
    """Why the handshake failed stands in headers of its answer (source: lark-oapi)."""
    status, headers = error.response.status_code, error.response.headers
    code = headers.get("handshake-autherrcode") or headers.get("handshake-status") or ""
    if not code.isdecimal():
        return Unreachable(f"HTTP {status} instead of a websocket")
    msg = headers.get("handshake-msg", "")[:200]
    return FeishuError(int(code), msg, http_status=status, action=Action.ALERT)


class ConnectionLost(FeishuFailure):
    """The connection ended or went silent. What was not acknowledged comes again."""


@dataclass(frozen=True, slots=True)
class Ack:
    """200 takes a message over; with anything else Feishu pushes it again. `answer` is what a
    card callback shows, as in the body of a webhook's answer."""

    code: int = 200
    answer: Mapping[str, Any] = field(default_factory=dict)

    def payload(self) -> bytes:
        """As Feishu reads it: the answer is base64 of JSON inside JSON."""
        body: dict[str, Any] = {"code": self.code}
        if self.answer:
            body["data"] = base64.b64encode(json.dumps(self.answer).encode()).decode()
        return json.dumps(body).encode()


PUSH_AGAIN_ACK = Ack(500)

# Gets a message as bytes of JSON, in a thread of its own.
MessageHandler = Callable[[bytes], Ack]


@dataclass(frozen=True, slots=True)
class ConnectionTimes:
    """What Feishu wishes, in seconds: between pings, between attempts to connect, and the most
    that is waited at random after a connection was lost."""

    ping_s: float = 120
    interval_s: float = 120
    jitter_s: float = 30

    def wished(self, config: object) -> ConnectionTimes:
        """With the values of a ClientConfig; what is absent or odd stays as it was.

        ReconnectCount is not followed: a bot that gives up is deaf until somebody notices.
        """
        settings = config if isinstance(config, dict) else {}
        return ConnectionTimes(
            ping_s=_bound_seconds(settings.get("PingInterval"), 1, 600, self.ping_s),
            interval_s=_bound_seconds(settings.get("ReconnectInterval"), 1, 600, self.interval_s),
            jitter_s=_bound_seconds(settings.get("ReconnectNonce"), 0, 120, self.jitter_s),
        )


def _bound_seconds(value: object, low: float, high: float, otherwise: float) -> float:
    return min(max(float(value), low), high) if isinstance(value, int | float) else otherwise


class OpenConnection:
    """Serves one socket. `pace` follows what Feishu wishes while it is open."""

    def __init__(
        self,
        socket: Connection,
        service: int,
        handler: MessageHandler,
        executor: Executor,
        pace: ConnectionTimes,
    ) -> None:
        self.pace = pace
        self._socket = socket
        self._service = service
        self._handler = handler
        self._executor = executor
        self._assembly = FrameAssembly(time.monotonic)
        self._slots = asyncio.Semaphore(_MOST_AT_ONCE)
        self._answering: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Until the connection is lost, which raises `ConnectionLost`.

        When cancelled, it acknowledges what it has begun and reads nothing more.
        """
        steps = [asyncio.ensure_future(step) for step in (self._read(), self._ping())]
        try:
            await asyncio.wait(steps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for step in steps:
                step.cancel()
            if self._answering:
                await asyncio.wait(self._answering)
            outcomes = await asyncio.gather(*steps, return_exceptions=True)
        raise next(o for o in outcomes if isinstance(o, Exception))

    async def _read(self) -> None:
        while True:
            raw = await self._received()
            try:
                await self._take(frames.decode_frame(raw))
            except MalformedFrame as exc:
                log.warning("long_connection.malformed_frame", reason=str(exc), bytes=len(raw))

    async def _received(self) -> bytes:
        try:
            # A pong answers every ping, so that there is always something to hear.
            async with asyncio.timeout(self.pace.ping_s + _SILENCE_S):
                return await self._socket.recv(decode=False)
        except TimeoutError as exc:
            raise ConnectionLost("Feishu has gone silent.") from exc
        except ConnectionClosed as exc:
            raise _connection_lost(exc) from exc

    async def _take(self, frame: Frame) -> None:
        kind = frame.header("type")
        if frame.method == CONTROL_METHOD and kind == "pong":
            self.pace = self.pace.wished(_json_object(frame.payload))
        elif frame.method == DATA_METHOD and kind in ("event", "card"):
            message = self._assembly.whole(frame)
            if message is not None:
                await self._slots.acquire()
                self._begin(self._answer(frame, message))

    def _begin(self, answering: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(answering)
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer(self, frame: Frame, message: bytes) -> None:
        """Acknowledges with the frame itself, its payload replaced, as lark-oapi does."""
        start_s = time.perf_counter()
        try:
            ack = await self._handle(message)
            spent_ms = str(int((time.perf_counter() - start_s) * 1000))
            headers = (*frame.headers, ("biz_rt", spent_ms))
            await self._send(replace(frame, headers=headers, payload=ack.payload()))
        except ConnectionLost:
            log.warning("long_connection.unacknowledged", id=frame.header("message_id"))
        finally:
            self._slots.release()

    async def _handle(self, message: bytes) -> Ack:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(ACK_LIMIT_S):
                return await loop.run_in_executor(self._executor, self._handler, message)
        except TimeoutError:
            log.error("long_connection.too_slow", limit_s=ACK_LIMIT_S)
        except Exception as exc:  # noqa: BLE001 - its text may hold people's words: frames only
            stack = "".join(traceback.format_tb(exc.__traceback__))
            log.error("long_connection.handler_failed", error=type(exc).__name__, stack=stack)
        return PUSH_AGAIN_ACK

    async def _ping(self) -> None:
        ping = Frame(CONTROL_METHOD, self._service, headers=(("type", "ping"),))
        while True:
            await self._send(ping)
            await asyncio.sleep(self.pace.ping_s)

    async def _send(self, frame: Frame) -> None:
        try:
            await self._socket.send(frames.encode_frame(frame))
        except ConnectionClosed as exc:
            raise _connection_lost(exc) from exc


def _connection_lost(exc: ConnectionClosed) -> ConnectionLost:
    close = exc.rcvd or exc.sent
    return ConnectionLost(f"It was closed ({close.code if close else 'without a word'}).")


def _json_object(payload: bytes | None) -> object:
    try:
        return json.loads(payload or b"{}")
    except (ValueError, RecursionError):
        return {}
