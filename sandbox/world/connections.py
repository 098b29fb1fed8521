"""Long connections: the app dials out and gets its events over a websocket, unencrypted.

Source: lark-oapi (ws/client.py) and the Node SDK (ws-client): `POST /callback/ws/endpoint` names an
address with a ticket for one connection and the `ClientConfig`; frames travel over it; the app
echoes a data frame with `{"code", "data"}` as its payload. An app with several connections gets
each event over one of them. At most 50 may be open.
"""

import base64
import contextlib
import json
import logging
import queue
import random
import secrets
import socket
import threading
from typing import Any
from urllib.parse import parse_qs, urlsplit

from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve

from sandbox.config import SandboxConfig
from sandbox.world.frames import CONTROL, DATA, GatewayFrame, decode, encode

MOST_CONNECTIONS = 50
_SERVICE = 33554678
_FORBIDDEN, _AUTH_FAILED, _EXCEEDED = 403, 514, 1000040350


class LongConnections:
    """The open connections of the app. The websocket listens from the first address given out."""

    def __init__(self, config: SandboxConfig) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._server: Server | None = None
        self._tickets: set[str] = set()
        self._open: list[ServerConnection] = []
        self._acks: dict[str, queue.Queue[bytes]] = {}
        self.in_use = False  # from the first connection on, events go this way only

    @property
    def count(self) -> int:
        return len(self._open)

    def endpoint(self, app_id: object, app_secret: object) -> dict[str, Any]:
        """The answer to an app that asks where to connect."""
        if (app_id, app_secret) != (self._config.app_id, self._config.app_secret):
            return {"code": _AUTH_FAILED, "msg": "app_id or app_secret is invalid"}
        if self.count >= MOST_CONNECTIONS:
            return {"code": _EXCEEDED, "msg": "the number of connections exceeded the limit"}
        with self._lock:
            self._server = self._server or self._listening()
            ticket = secrets.token_hex(12)
            self._tickets.add(ticket)
        port = self._server.socket.getsockname()[1]
        device = secrets.randbelow(10**18)
        url = (
            f"ws://127.0.0.1:{port}/ws/v2?fpid=493&aid=552564&device_id={device}"
            f"&access_key={secrets.token_hex(16)}&service_id={_SERVICE}&ticket={ticket}"
        )
        return {"code": 0, "msg": "ok", "data": {"URL": url, "ClientConfig": self._client_config}}

    def post(self, plain: bytes, deadline_s: float) -> tuple[int, bytes]:
        """Delivers an event over one of the connections: status and body of the app's answer.
        Raises OSError when there is no answer in time."""
        with self._lock:
            if not self._open:
                raise ConnectionError("no connection")
            connection, message_id = random.choice(self._open), secrets.token_hex(16)  # noqa: S311
            self._acks[message_id] = queue.Queue()
        told = {
            "type": "event",
            "message_id": message_id,
            "trace_id": secrets.token_hex(16),
            "sum": "1",
            "seq": "0",
        }
        try:
            connection.send(encode(GatewayFrame(DATA, _SERVICE, told, plain)))
            return _answer(self._acks[message_id].get(timeout=deadline_s))
        except (ConnectionClosed, queue.Empty) as exc:
            raise ConnectionError("no answer in time") from exc
        finally:
            del self._acks[message_id]

    def cut(self) -> int:
        """Ends every connection as a network does, without a word; returns how many."""
        with self._lock:
            cut = list(self._open)
        for connection in cut:
            with contextlib.suppress(OSError):
                connection.socket.shutdown(socket.SHUT_RDWR)
        return len(cut)

    def close(self) -> None:
        with self._lock:
            server, self._server = self._server, None
        if server:
            self.cut()
            server.shutdown()

    @property
    def _client_config(self) -> dict[str, int]:
        return {
            "ReconnectCount": -1,
            "ReconnectInterval": self._config.reconnect_interval_s,
            "ReconnectNonce": 0,
            "PingInterval": 120,
        }

    def _listening(self) -> Server:
        quiet = logging.getLogger("sandbox.connections")
        quiet.setLevel(logging.CRITICAL)  # a client that goes away is no error
        server = serve(
            self._serve,
            "127.0.0.1",
            0,
            process_request=self._admit,
            compression=None,
            close_timeout=0.5,
            logger=quiet,
        )
        threading.Thread(target=server.serve_forever, name="connections", daemon=True).start()
        return server

    def _admit(self, _: ServerConnection, request: Request) -> Response | None:
        ticket = parse_qs(urlsplit(request.path).query).get("ticket", [""])[0]
        with self._lock:
            if ticket in self._tickets:
                self._tickets.discard(ticket)  # it is good for one connection
                return None
        headers = Headers({"Handshake-Status": str(_FORBIDDEN), "Handshake-Msg": "invalid ticket"})
        return Response(403, "Forbidden", headers)

    def _serve(self, connection: ServerConnection) -> None:
        with self._lock:
            self._open.append(connection)
            self.in_use = True
        try:
            with contextlib.suppress(ConnectionClosed, OSError, ValueError):
                for raw in connection:
                    self._take(connection, decode(raw.encode() if isinstance(raw, str) else raw))
        finally:
            with self._lock:
                self._open.remove(connection)

    def _take(self, connection: ServerConnection, frame: GatewayFrame) -> None:
        if frame.method == DATA:
            if waiting := self._acks.get(frame.headers.get("message_id", "")):
                waiting.put(frame.payload)
        elif frame.headers.get("type") == "ping":
            config = json.dumps(self._client_config).encode()
            connection.send(encode(GatewayFrame(CONTROL, _SERVICE, {"type": "pong"}, config)))


def _answer(payload: bytes) -> tuple[int, bytes]:
    """Status and body of an acknowledgement. Raises OSError for one that cannot be read."""
    try:
        told = json.loads(payload)
        return int(told["code"]), base64.b64decode(told.get("data") or b"e30=")
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise ConnectionError("the acknowledgement cannot be read") from exc
