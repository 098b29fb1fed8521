"""An MCP server over HTTP that forgets its sessions, as one does that was started again, and breaks
off under calls."""

from __future__ import annotations

import json
import socket
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_NO_INPUT = {"type": "object", "properties": {}}
_ABOUT = {"capabilities": {"tools": {}}, "serverInfo": {"name": "forgetful", "version": "1"}}
TOOLS = [
    {"name": "room", "inputSchema": _NO_INPUT, "annotations": {"readOnlyHint": True}},
    {"name": "book", "inputSchema": _NO_INPUT},
]


@dataclass
class ForgetfulServer:
    """`done` counts what was carried out. `refusal`: status and sentence for an unknown session; ""
    leaves out the error of the protocol. `breaks_off`: so many calls end without an answer. `odd`:
    the answer to calls, in the place of one by the protocol. `listing`: what a page of tools says
    besides. `refuses_in_events`: an unknown session is refused in a stream of events."""

    port: int = 0
    sessions: set[str] = field(default_factory=set)
    done: Counter[str] = field(default_factory=Counter)
    refusal: tuple[int, str] = (404, "Session not found")
    breaks_off: int = 0
    odd: dict[str, Any] = field(default_factory=dict)
    listing: dict[str, Any] = field(default_factory=dict)
    refuses_in_events: bool = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def answer(self, asked: dict[str, Any], session: str) -> tuple[int, dict[str, Any], str]:
        """Status, result and session of a request."""
        method, params = asked["method"], asked.get("params") or {}
        if method == "initialize":
            session = uuid.uuid4().hex
            self.sessions.add(session)
            self.done[method] += 1
            return 200, {**_ABOUT, "protocolVersion": params["protocolVersion"]}, session
        if session not in self.sessions:
            return self.refusal[0], {}, ""
        if method == "tools/list":
            self.done[method] += 1
            return 200, {"tools": TOOLS, **self.listing}, session
        if method == "tools/call":
            self.done[params["name"]] += 1
            return 200, {"content": [{"type": "text", "text": "room OAK"}]}, session
        return (200 if "id" in asked else 202), {}, session


@contextmanager
def forgetful_server(
    refusal: tuple[int, str] = (404, "Session not found"),
) -> Iterator[ForgetfulServer]:
    """A running server, in threads of this process."""
    state = ForgetfulServer(refusal=refusal)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(state))
    server.daemon_threads = True
    state.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(state: ForgetfulServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            known = self.headers.get("Mcp-Session-Id", "")
            status, result, session = state.answer(asked, known)
            body: dict[str, Any] = {"jsonrpc": "2.0", "id": asked.get("id"), "result": result}
            if not session and status != 202:
                error = {"code": -32000, "message": state.refusal[1]}
                body = {**body, "id": None if status >= 400 else asked.get("id"), "error": error}
                body = body if state.refusal[1] else {}
                body.pop("result", None)
            elif asked["method"] == "tools/call" and state.breaks_off:
                state.breaks_off -= 1
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            elif asked["method"] == "tools/call" and state.odd:
                body = {"jsonrpc": "2.0", "id": asked["id"], **state.odd}
            data = b"" if status == 202 else json.dumps(body).encode()
            kind = "application/json"
            if state.refuses_in_events and "error" in body:
                data = b'event: message\ndata: {"error": "Session not found"}\n\n'
                kind = "text/event-stream"
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            if session:
                self.send_header("Mcp-Session-Id", session)
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self.send_response(404 if self.command == "GET" else 405)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_DELETE = do_GET  # noqa: N815 -- the name that the base class looks for

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
