"""A gateway of long connections on loopback: hands out addresses, pushes messages, keeps the acks.

It speaks as Feishu does to lark-oapi: `POST /callback/ws/endpoint` names an address with a ticket
for one connection, then protobuf frames travel over a websocket.
"""

from __future__ import annotations

import contextlib
import json
import logging
import queue
import secrets
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve

from bot.feishu import frames
from bot.feishu.frames import CONTROL_METHOD, DATA_METHOD, Frame

_FIXTURES = Path(__file__).parents[1] / "data" / "feishu"
APP_ID, APP_SECRET = "cli_a1b2c3d4e5f6a7b8", "gateway-app-secret"
ACCESS_KEY = "access-key-of-the-gateway"
SERVICE = 33554678
_WITHIN_S = 60.0


@dataclass
class Gateway:
    """`config` is the ClientConfig handed out. `answers` of the endpoint, (status, body), come
    before the usual one; `refusals` are headers of handshakes that are refused."""

    domain: str = ""
    config: dict[str, int] = field(
        default_factory=lambda: {"PingInterval": 120, "ReconnectNonce": 0, "ReconnectInterval": 1}
    )
    answers: list[tuple[int, object]] = field(default_factory=list)
    refusals: list[dict[str, str]] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    tickets: list[str] = field(default_factory=list)
    pings: queue.Queue[Frame] = field(default_factory=queue.Queue)
    closed: queue.Queue[int | None] = field(default_factory=queue.Queue)
    answers_pings: bool = True
    _websocket_port: int = 0
    _open: queue.Queue[ServerConnection] = field(default_factory=queue.Queue)
    _current: ServerConnection | None = None
    _acks: dict[str, queue.Queue[Frame]] = field(default_factory=dict)
    _released: threading.Event = field(default_factory=threading.Event)

    def connected(self) -> ServerConnection:
        """Waits for the next connection, which from then on gets what is pushed."""
        self._current = self._open.get(timeout=_WITHIN_S)
        return self._current

    def send(self, message: object, *, parts: int = 1, kind: str = "event") -> str:
        """Pushes `message` (JSON, or bytes as they are) in frames; its message_id."""
        raw = message if isinstance(message, bytes) else json.dumps(message).encode()
        message_id = secrets.token_hex(8)
        self._acks[message_id] = queue.Queue()
        size = -(-len(raw) // parts)
        for number in range(parts):
            headers = {"type": kind, "message_id": message_id, "trace_id": secrets.token_hex(8),
                       "sum": str(parts), "seq": str(number), "timestamp": "1"}  # fmt: skip
            piece = raw[number * size : (number + 1) * size]
            self.send_raw(frames.encode_frame(
                Frame(DATA_METHOD, SERVICE, 1, 2, tuple(headers.items()), payload=piece,
                      log_id_new="log")
            ))  # fmt: skip
        return message_id

    def send_raw(self, raw: bytes) -> None:
        assert self._current is not None, "call connected() first"
        self._current.send(raw)

    def ack(self, message_id: str) -> dict[str, Any]:
        """The payload of the acknowledgement; an error when there is none in time."""
        return dict(json.loads(self.ack_frame(message_id).payload or b"null"))

    def ack_frame(self, message_id: str) -> Frame:
        return self._acks[message_id].get(timeout=_WITHIN_S)

    def acknowledged(self, message_id: str) -> bool:
        return not self._acks[message_id].empty()

    def push(self, message: object, **more: Any) -> dict[str, Any]:
        """`send` and `ack`."""
        return self.ack(self.send(message, **more))

    def drop(self) -> None:
        """Ends the connection as a network does: without a word."""
        assert self._current is not None, "call connected() first"
        self._current.socket.shutdown(socket.SHUT_RDWR)

    def _endpoint(self, body: dict[str, Any]) -> tuple[int, object]:
        self.asked.append(body)
        if self.answers:
            return self.answers.pop(0)
        found = json.loads((_FIXTURES / "ws_endpoint__resp.json").read_text(encoding="utf-8"))
        self.tickets.append(secrets.token_hex(12))
        found["data"]["ClientConfig"] = self.config
        found["data"]["URL"] = (
            f"ws://127.0.0.1:{self._websocket_port}/ws/v2?fpid=493&aid=552564&device_id=7441873&"
            f"access_key={ACCESS_KEY}&service_id={SERVICE}&ticket={self.tickets[-1]}"
        )
        return 200, found

    def _admit(self, _: ServerConnection, request: Request) -> Response | None:
        given = parse_qs(urlsplit(request.path).query)
        if self.refusals:
            return Response(403, HTTPStatus(403).phrase, Headers(self.refusals.pop(0)), b"")
        known = given.get("ticket", [""])[0] in self.tickets
        return None if known and given.get("access_key") == [ACCESS_KEY] else _forbidden()

    def _serve(self, connection: ServerConnection) -> None:
        self._open.put(connection)
        with contextlib.suppress(ConnectionClosed, OSError):
            for raw in connection:
                data = bytes(raw, "utf-8") if isinstance(raw, str) else raw
                self._take(connection, frames.decode_frame(data))
        self.closed.put(connection.close_code)

    def _take(self, connection: ServerConnection, frame: Frame) -> None:
        if frame.method == DATA_METHOD:
            self._acks[frame.header("message_id")].put(frame)
            return
        self.pings.put(frame)
        if self.answers_pings:
            config = json.dumps(self.config).encode()
            pong = Frame(CONTROL_METHOD, SERVICE, headers=(("type", "pong"),), payload=config)
            connection.send(frames.encode_frame(pong))


def _forbidden() -> Response:
    return Response(403, "Forbidden", Headers({"handshake-status": "403"}), b"")


def _http_server(gateway: Gateway) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path.startswith("/open-apis/auth/"):
                status, answer = 200, {"code": 0, "tenant_access_token": "t-1", "expire": 7200}
            else:
                status, answer = gateway._endpoint(body)
            if answer is None:  # an answer that never comes
                gateway._released.wait(_WITHIN_S)
                return
            raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)


@contextlib.contextmanager
def running_gateway() -> Iterator[Gateway]:
    """A gateway in threads of this process."""
    gateway = Gateway()
    http, websocket = _http_server(gateway), _websocket_server(gateway)
    gateway.domain = f"http://127.0.0.1:{http.server_address[1]}"
    gateway._websocket_port = websocket.socket.getsockname()[1]
    threads = [threading.Thread(target=http.serve_forever, args=(0.01,)),
               threading.Thread(target=websocket.serve_forever)]  # fmt: skip
    for thread in threads:
        thread.start()
    try:
        yield gateway
    finally:
        gateway._released.set()
        http.shutdown()
        websocket.shutdown()
        for thread in threads:
            thread.join()
        http.server_close()


def _websocket_server(gateway: Gateway) -> Server:
    own = logging.getLogger("gateway")
    own.setLevel(logging.WARNING)  # tests look for secrets in what the bot writes, not in this
    return serve(
        gateway._serve, "127.0.0.1", 0, process_request=gateway._admit, compression=None,
        close_timeout=0.5, logger=own,
    )  # fmt: skip
