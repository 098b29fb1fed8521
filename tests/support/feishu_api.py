"""Feishu's API on loopback: answers as it is told to, keeps what it was asked, fails on demand."""

from __future__ import annotations

import json
import socket
import ssl
import struct
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit

_RELEASED_S = 30.0
_RESET = struct.pack("ii", 1, 0)

Trouble = Literal["", "cut", "reset", "half", "hang"]


@dataclass(frozen=True, slots=True)
class Answer:
    """`trouble`: the connection ends without a word (or in the middle of the body), or nothing
    ever comes."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    trouble: Trouble = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it arrived; `target` is the path with its query, undecoded."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query))

    @property
    def json(self) -> Any:
        return json.loads(self.body or b"null")


class FeishuApi:
    """Answers for a method and path come in the order given; the last one stays."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[Asked] = []
        self.connections = 0
        self.otherwise = Answer(b"no such path", 404)
        self.released = threading.Event()
        self._answers: dict[tuple[str, str], list[Answer]] = defaultdict(list)

    def answers(
        self,
        method: str,
        path: str,
        body: Any = b"",
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        trouble: Trouble = "",
    ) -> None:
        """`body` is sent as JSON unless it is bytes."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._answers[method, path].append(Answer(raw, status, headers or {}, trouble))

    def answer_to(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        answers = self._answers[asked.method, asked.path]
        if not answers:
            return self.otherwise
        return answers.pop(0) if len(answers) > 1 else answers[0]


@contextmanager
def feishu_api(
    api: FeishuApi | None = None, *, port: int = 0, tls: ssl.SSLContext | None = None
) -> Iterator[FeishuApi]:
    """A running server, in threads of this process."""
    api = api or FeishuApi()
    server = _Server(api, port)
    if tls:
        server.socket = tls.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    api.url = f"http{'s' if tls else ''}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield api
    finally:
        api.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, api: FeishuApi, port: int) -> None:
        super().__init__(("127.0.0.1", port), _handler(api))
        self._api = api

    def process_request(self, request: Any, client_address: Any) -> None:
        self._api.connections += 1
        super().process_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what some tests are about."""


def _handler(api: FeishuApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked = Asked(self.command, self.path, self.headers, body)
            answer = api.answer_to(asked)
            if answer.trouble in ("", "half"):
                self._send(answer)
            elif answer.trouble == "hang":
                api.released.wait(_RELEASED_S)
            elif answer.trouble == "reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.close_connection = self.close_connection or bool(answer.trouble)

        def _send(self, answer: Answer) -> None:
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            missing = 1 if answer.trouble == "half" else 0
            self.send_header("Content-Length", str(len(answer.body) + missing))
            self.end_headers()
            self.wfile.write(answer.body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 - http.server

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
