"""A small threaded WSGI server with keep-alive, on the loopback interface only.

werkzeug's own server closes the connection after each answer, which would hide whether the app
under test pools its connections. One thread per connection; HTTP/1.1; requests with
`Content-Length` or chunked; answers with `Content-Length`, or chunked when the length is unknown.
"""

import contextlib
import io
import socketserver
from collections.abc import Callable, Iterable
from email.utils import formatdate
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote_to_bytes

HOST = "127.0.0.1"
MAX_LINE = 64 * 1024
MAX_BODY = 16 * 1024 * 1024
IDLE_S = 300.0

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


class _Malformed(Exception):
    """The request cannot be read; the connection is closed."""


class _Connection(socketserver.StreamRequestHandler):
    """Answers the requests of one connection, one after the other."""

    disable_nagle_algorithm = True
    wbufsize = -1
    timeout = IDLE_S
    server: "SandboxServer"

    def handle(self) -> None:
        with contextlib.suppress(OSError, _Malformed):
            while self._one_request():
                pass

    def finish(self) -> None:
        with contextlib.suppress(OSError):
            super().finish()

    def _one_request(self) -> bool:
        line = self.rfile.readline(MAX_LINE)
        if not line.strip():
            return False
        method, target, version = _request_line(line)
        headers = _headers(self.rfile)
        if headers.get("expect", "").lower() == "100-continue":
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.wfile.flush()
        environ = self._environ(method, target, headers, _body(self.rfile, headers))
        keep = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
        self._answer(environ, keep)
        return keep

    def _answer(self, environ: dict[str, Any], keep: bool) -> None:
        head: list[Any] = []

        def start_response(status: str, headers: list[tuple[str, str]], exc: Any = None) -> None:
            head[:] = [status, headers]

        parts = self.server.application(environ, start_response)
        try:
            self._write(environ["REQUEST_METHOD"], head, parts, keep)
        finally:
            close = getattr(parts, "close", None)
            if close is not None:
                close()

    def _write(self, method: str, head: list[Any], parts: Iterable[bytes], keep: bool) -> None:
        rest = iter(parts)
        first = next(rest, b"")
        status, headers = head
        names = {name.lower() for name, _ in headers}
        bodiless = method == "HEAD" or status[:3] in ("204", "304")
        chunked = "content-length" not in names and not bodiless
        lines = [f"HTTP/1.1 {status}", f"Date: {formatdate(usegmt=True)}"]
        lines += [f"{name}: {value}" for name, value in headers]
        lines += ["Transfer-Encoding: chunked"] if chunked else []
        lines += [] if keep else ["Connection: close"]
        self.wfile.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        if not bodiless:
            self._write_part(first, chunked)
            for part in rest:
                self._write_part(part, chunked)
            if chunked:
                self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _write_part(self, part: bytes, chunked: bool) -> None:
        if chunked and part:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.flush()
        elif part:
            self.wfile.write(part)

    def _environ(
        self, method: str, target: str, headers: dict[str, str], body: bytes
    ) -> dict[str, Any]:
        path, _, query = target.partition("?")
        environ: dict[str, Any] = {
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
            "QUERY_STRING": query,
            "SERVER_NAME": HOST,
            "SERVER_PORT": str(self.server.port),
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": self.client_address[0],
            "REMOTE_PORT": self.client_address[1],
            "CONTENT_TYPE": headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": self.server.errors,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            "sandbox.socket": self.connection,
        }
        for name, value in headers.items():
            environ["HTTP_" + name.upper().replace("-", "_")] = value
        return environ


class SandboxServer(socketserver.ThreadingTCPServer):
    """Bound when made; `serve_forever()` serves until `shutdown()`. `port` is the bound port."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 256

    def __init__(self, application: Application, port: int, errors: Any) -> None:
        super().__init__((HOST, port), _Connection)
        self.application = application
        self.errors = errors
        self.port = int(self.server_address[1])


def _request_line(line: bytes) -> tuple[str, str, str]:
    parts = line.decode("latin-1").split()
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise _Malformed(HTTPStatus.BAD_REQUEST)
    return parts[0], parts[1], parts[2]


def _headers(source: io.BufferedIOBase) -> dict[str, str]:
    headers: dict[str, str] = {}
    while line := source.readline(MAX_LINE).decode("latin-1").strip():
        name, colon, value = line.partition(":")
        if not colon:
            raise _Malformed(HTTPStatus.BAD_REQUEST)
        headers[name.strip().lower()] = value.strip()
    return headers


def _body(source: io.BufferedIOBase, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return b"".join(_chunks(source))
    size = headers.get("content-length", "0")
    if not size.isdigit() or int(size) > MAX_BODY:
        raise _Malformed(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    return source.read(int(size)) if int(size) else b""


def _chunks(source: io.BufferedIOBase) -> Iterable[bytes]:
    left = MAX_BODY
    while size := int(source.readline(MAX_LINE).split(b";")[0] or b"0", 16):
        left -= size
        if left < 0:
            raise _Malformed(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        yield source.read(size)
        source.readline(MAX_LINE)
    source.readline(MAX_LINE)
