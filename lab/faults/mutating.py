"""A webhook in front of the bot's that spoils what Feishu pushes, where a message says how."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from bot.feishu.crypto import decrypt
from sandbox.world.push import encrypt, signature

Spoil = Callable[[dict[str, Any]], None]
_MARK = re.compile(r"spoil=([a-z_0-9]+)")
_HEADERS = ("X-Lark-Request-Timestamp", "X-Lark-Request-Nonce")


@contextmanager
def spoiling(port: int, encrypt_key: str, spoils: Mapping[str, Spoil]) -> Iterator[int]:
    """The port of a webhook before the one on `port`; a message with `spoil=NAME` in its text is
    spoilt as `spoils[NAME]` says, then signed as Feishu does."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(port, encrypt_key, spoils))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def spoilt(body: bytes, encrypt_key: str, spoils: Mapping[str, Spoil]) -> bytes:
    """The body of a push, as it is passed on."""
    plain = decrypt(encrypt_key, json.loads(body)["encrypt"])
    found = _MARK.search(plain.decode())
    if found is None or found[1] not in spoils:
        return body
    envelope = json.loads(plain)
    spoils[found[1]](envelope)
    changed = json.dumps(envelope).encode()  # ASCII: lone halves of characters travel escaped
    return json.dumps({"encrypt": encrypt(encrypt_key, changed)}).encode()


def _handler(
    port: int, encrypt_key: str, spoils: Mapping[str, Spoil]
) -> type[BaseHTTPRequestHandler]:
    class MutatingHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            body = spoilt(body, encrypt_key, spoils)
            timestamp, nonce = (self.headers[name] for name in _HEADERS)
            headers = {
                "Content-Type": "application/json",
                **dict(zip(_HEADERS, (timestamp, nonce), strict=True)),
                "X-Lark-Signature": signature(timestamp, nonce, encrypt_key, body),
            }
            status, answer = self._passed_on(body, headers)
            with contextlib.suppress(OSError):  # Feishu waits three seconds, no longer
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

        def _passed_on(self, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
            upstream = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            try:
                upstream.request("POST", self.path, body, dict(headers))
                answer = upstream.getresponse()
                return answer.status, answer.read()
            except (OSError, http.client.HTTPException):
                return 502, b""  # the bot is being started anew: Feishu pushes again
            finally:
                upstream.close()

        def log_message(self, format: str, *args: object) -> None:
            pass

    return MutatingHandler
