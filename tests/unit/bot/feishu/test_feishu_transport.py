"""Real sockets on loopback: connections are kept, shared and replaced when they die."""

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bot.feishu.errors import Unreachable
from bot.feishu.transport import Request, Timeouts, Transport, pooled_session


class Server(ThreadingHTTPServer):
    """Answers every request, counting connections."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.connections = 0

    def process_request(self, request, client_address):
        self.connections += 1
        super().process_request(request, client_address)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = b'{"code":0}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        """An answer that never comes: the server waits until the test is over."""
        self.server.released.wait(10)  # type: ignore[attr-defined]
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    server.released = threading.Event()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.released.set()  # type: ignore[attr-defined]
    server.shutdown()
    thread.join()
    server.server_close()


def domain(server: Server) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}/"


def test_calls_after_each_other_use_one_connection(server):
    async def calls() -> list[int]:
        transport = Transport(domain(server))
        answers = [await transport.send(Request("POST", "/x", body={})) for _ in range(20)]
        transport.close()
        return [answer.status for answer in answers]

    assert asyncio.run(calls()) == [200] * 20
    assert server.connections == 1


def test_a_closed_port_is_unreachable():
    transport = Transport("http://127.0.0.1:9", timeouts=Timeouts(0.2, 0.2))
    with pytest.raises(Unreachable, match="ConnectionError"):
        transport.exchange(Request("GET", "/x"))
    transport.close()


def test_a_server_that_never_answers_is_given_up(server):
    transport = Transport(domain(server), timeouts=Timeouts(0.2, 0.05))
    with pytest.raises(Unreachable, match="Timeout"):
        transport.exchange(Request("GET", "/x"))
    transport.close()


def test_the_environment_changes_nothing(server, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    transport = Transport(domain(server))
    assert transport.exchange(Request("POST", "/x", body={})).status == 200
    transport.close()


def test_a_request_does_not_show_its_body():
    assert "secret" not in repr(Request("POST", "/x", body={"app_secret": "secret"}))


def test_all_connections_share_one_tls_context_and_check_certificates():
    session = pooled_session()
    contexts = {
        session.get_adapter(url).poolmanager.connection_from_url(url).conn_kw.get("ssl_context")
        for url in ("https://open.feishu.cn", "https://open.larksuite.com")
    }
    (context,) = contexts
    assert context.check_hostname
    session.close()
