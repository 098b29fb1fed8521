"""What a check asks goes to who was named, with its keys, and nowhere else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bot.operations.doctor.http_exchange import http_request

KEY = {"Authorization": "Bearer sk-1"}


class Web(ThreadingHTTPServer):
    """Sends everybody on to `elsewhere`, if there is one; remembers the keys it was shown."""

    daemon_threads = True

    def __init__(self, elsewhere: str = "") -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.elsewhere = elsewhere
        self.keys: list[str | None] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Answering(BaseHTTPRequestHandler):
    server: Web

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.server.keys.append(self.headers["Authorization"])
        self.send_response(302 if self.server.elsewhere else 200)
        self.send_header("Location", self.server.elsewhere)
        self.end_headers()
        self.wfile.write(b'{"said": 1}')

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def stranger() -> Iterator[Web]:
    with Web() as web:
        yield web
        web.shutdown()


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_redirection_is_the_answer_and_takes_no_key_elsewhere(stranger: Web, method: str) -> None:
    with Web(elsewhere=stranger.url) as named:
        answer = http_request(method, named.url, headers=KEY)
        named.shutdown()

    assert (answer.status, answer.body) == (302, {"said": 1})
    assert named.keys == ["Bearer sk-1"]
    assert stranger.keys == []
