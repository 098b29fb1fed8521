"""One open long connection: messages in, acknowledgements out, and a ping now and then.

Feishu wants each message acknowledged within 3 s and pushes it again otherwise (source: Feishu,
“Receive events through long connection”). The protocol itself is documented by lark-oapi's client
only. Unlike there, nothing that handles a message runs on the event loop, and a connection that
went silent counts as lost: a middlebox may drop it without a word.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
import traceback
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any

import structlog
from websockets.asyncio.connection import Connection
from websockets.exceptions import ConnectionClosed

from bot.feishu.connection import frames
from bot.feishu.connection.assembly import FrameAssembly
from bot.feishu.connection.frames import CONTROL, DATA, Frame, MalformedFrame
from bot.feishu.errors import FeishuFailure

log = structlog.get_logger()

ACK_LIMIT_S = 2.5
_SILENCE_S = 15.0
_MOST_AT_ONCE = 64


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


PUSH_AGAIN = Ack(500)

# Gets a message as bytes of JSON, in a thread of its own.
Handler = Callable[[bytes], Ack]


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
            ping_s=_bounded(settings.get("PingInterval"), 1, 600, self.ping_s),
            interval_s=_bounded(settings.get("ReconnectInterval"), 1, 600, self.interval_s),
            jitter_s=_bounded(settings.get("ReconnectNonce"), 0, 120, self.jitter_s),
        )


def _bounded(value: object, low: float, high: float, otherwise: float) -> float:
    return min(max(float(value), low), high) if isinstance(value, int | float) else otherwise


class OpenConnection:
    """Serves one socket. `pace` follows what Feishu wishes while it is open."""

    def __init__(
        self,
        socket: Connection,
        service: int,
        handler: Handler,
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
                await self._take(frames.decode(raw))
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
            raise _lost(exc) from exc

    async def _take(self, frame: Frame) -> None:
        kind = frame.header("type")
        if frame.method == CONTROL and kind == "pong":
            self.pace = self.pace.wished(_object(frame.payload))
        elif frame.method == DATA and kind in ("event", "card"):
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
            ack = await self._handled(message)
            spent_ms = str(int((time.perf_counter() - start_s) * 1000))
            headers = (*frame.headers, ("biz_rt", spent_ms))
            await self._send(replace(frame, headers=headers, payload=ack.payload()))
        except ConnectionLost:
            log.warning("long_connection.unacknowledged", id=frame.header("message_id"))
        finally:
            self._slots.release()

    async def _handled(self, message: bytes) -> Ack:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(ACK_LIMIT_S):
                return await loop.run_in_executor(self._executor, self._handler, message)
        except TimeoutError:
            log.error("long_connection.too_slow", limit_s=ACK_LIMIT_S)
        except Exception as exc:  # noqa: BLE001 - its text may hold people's words: frames only
            stack = "".join(traceback.format_tb(exc.__traceback__))
            log.error("long_connection.handler_failed", error=type(exc).__name__, stack=stack)
        return PUSH_AGAIN

    async def _ping(self) -> None:
        ping = Frame(CONTROL, self._service, headers=(("type", "ping"),))
        while True:
            await self._send(ping)
            await asyncio.sleep(self.pace.ping_s)

    async def _send(self, frame: Frame) -> None:
        try:
            await self._socket.send(frames.encode(frame))
        except ConnectionClosed as exc:
            raise _lost(exc) from exc


def _lost(exc: ConnectionClosed) -> ConnectionLost:
    close = exc.rcvd or exc.sent
    return ConnectionLost(f"It was closed ({close.code if close else 'without a word'}).")


def _object(payload: bytes | None) -> object:
    try:
        return json.loads(payload or b"{}")
    except (ValueError, RecursionError):
        return {}
