"""The stand-in platform over real sockets: keep-alive, lost answers, live updates, pushes."""

import http.client
import json
import queue
import socket
import socketserver
import threading
from http.server import BaseHTTPRequestHandler

import pytest

from sandbox.app import create_sandbox
from sandbox.config import SandboxConfig
from sandbox.server import HOST, SandboxServer
from tests.support.rows import every_row


class Webhook(socketserver.ThreadingTCPServer):
    """The app's end: keeps the bodies, answers from `statuses` and then 200."""

    daemon_threads = True

    def __init__(self):
        self.bodies, self.statuses = queue.Queue(), []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(outer.statuses.pop(0) if outer.statuses else 200)
                self.end_headers()
                self.wfile.write(b"{}")
                outer.bodies.put((dict(self.headers), body))

            def log_message(self, *arguments):
                pass

        super().__init__((HOST, 0), Handler)


@pytest.fixture
def serve():
    """Runs a server in a thread until the test ends."""
    running = []

    def run(server):
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        running.append(server)
        return server

    yield run
    for server in running:
        server.shutdown()
        server.server_close()


@pytest.fixture
def webhook(serve):
    return serve(Webhook())


@pytest.fixture
def platform(serve, webhook, capsys):
    url = f"http://{HOST}:{webhook.server_address[1]}/webhook/event"
    app = create_sandbox(SandboxConfig(webhook_url=url, retry_scale=0.0001))
    server = serve(SandboxServer(app, 0, None))
    yield server
    app.extensions["sandbox"].close()


def ask(connection, method, path, body=None):
    headers = {"Content-Type": "application/json"}
    connection.request(method, path, json.dumps(body) if body is not None else None, headers)
    answer = connection.getresponse()
    return answer, json.loads(answer.read() or b"{}")


@pytest.fixture
def connection(platform):
    made = http.client.HTTPConnection(HOST, platform.port, timeout=10)
    yield made
    made.close()


def speak(connection, text):
    _, state = ask(connection, "GET", "/sandbox/api/state")
    body = {
        "as": state["people"][1]["open_id"],
        "chat_id": state["chats"][0]["chat_id"],
        "text": text,
    }
    return ask(connection, "POST", "/sandbox/api/messages", body)[1]["message_id"]


def test_one_connection_carries_many_calls_and_is_recognised_by_its_port(connection):
    for _ in range(3):
        ask(connection, "GET", "/open-apis/bot/v3/info")
    _, seen = ask(connection, "GET", "/sandbox/api/requests")
    ports = {one["client_port"] for one in seen["items"]}
    assert ports == {connection.sock.getsockname()[1]}


def test_an_event_reaches_the_webhook_signed_and_is_pushed_again_after_a_failure(
    connection, webhook
):
    webhook.statuses = [500, 503]
    message_id = speak(connection, "@Memo hello")
    seen = [webhook.bodies.get(timeout=10) for _ in range(3)]
    assert len({body for _, body in seen}) == 1
    assert all("X-Lark-Signature" in headers for headers, _ in seen)
    path = f"/sandbox/api/deliveries?message_id={message_id}&wait_s=10"
    _, deliveries = ask(connection, "GET", path)
    (delivery,) = deliveries["items"]
    assert [one["status"] for one in delivery["attempts"]] == [500, 503, 200]


def test_a_dropped_answer_cuts_the_connection_after_the_call_took_effect(connection, platform):
    ask(connection, "POST", "/sandbox/api/faults", {"path_prefix": "/open-apis/auth", "drop": True})
    victim = http.client.HTTPConnection(HOST, platform.port, timeout=10)
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        ask(victim, "POST", "/open-apis/auth/v3/tenant_access_token/internal", {})
    victim.close()


def test_changes_are_streamed_as_they_happen(connection, platform):
    watcher = http.client.HTTPConnection(HOST, platform.port, timeout=10)
    watcher.request("GET", "/sandbox/api/stream?after=0")
    answer = watcher.getresponse()
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    speak(connection, "live")
    lines = []
    while not any(line.startswith(b"data: {") and b"live" in line for line in lines):
        lines.append(answer.readline())
    assert b"event: message\n" in lines
    answer.close()
    watcher.close()


def test_waiting_for_messages_ends_when_there_are_enough(connection, platform):
    found = queue.Queue()

    def wait():
        other = http.client.HTTPConnection(HOST, platform.port, timeout=10)
        found.put(ask(other, "GET", "/sandbox/api/messages?since=0&count=2&wait_s=10")[1])
        other.close()

    waiting = threading.Thread(target=wait)
    waiting.start()
    speak(connection, "one")
    speak(connection, "two")
    assert [one["text"] for one in found.get(timeout=10)["items"]] == ["one", "two"]
    waiting.join()


def test_the_page_is_served_with_a_policy_that_forbids_foreign_scripts(connection):
    connection.request("GET", "/")
    answer = connection.getresponse()
    assert b"<html" in answer.read()
    assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Frame-Options"] == "DENY"


@every_row("raw", [b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\nbroken\r\n\r\n"])
def test_a_request_that_cannot_be_read_closes_the_connection(platform, raw):
    with socket.create_connection((HOST, platform.port), timeout=10) as client:
        client.sendall(raw)
        assert client.recv(100) == b""


def test_an_address_can_still_be_built():
    app = create_sandbox(SandboxConfig())
    adapter = app.url_map.bind("127.0.0.1")
    [rule] = [one for one in app.url_map.iter_rules() if one.rule.endswith("/reply")]
    try:
        built = adapter.build(
            rule.endpoint, dict.fromkeys(rule.arguments, "a b"), append_unknown=True
        )
        asked = adapter.build(rule.endpoint, {**dict.fromkeys(rule.arguments, "a"), "q": "1"})
    finally:
        app.extensions["sandbox"].close()
    assert built == "/open-apis/im/v1/messages/a%20b/reply"
    assert asked == "/open-apis/im/v1/messages/a/reply?q=1"
