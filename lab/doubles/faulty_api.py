"""Supabase's API behind a gateway that answers in its place when it is told to."""

from __future__ import annotations

import contextlib
import http.client
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_PASSED_ON = ("Content-Type", "Proxy-Status")


@dataclass(frozen=True, slots=True)
class ApiFault:
    """An answer in place of the API's. With `cut` the connection ends in the middle of the body;
    `of_people` is for calls with a person's token only; `delay_s` passes before it. One call in
    `every` is answered so; with `done` the API carries that call out first."""

    status: int
    body: str = ""
    content_type: str = "application/json"
    cut: bool = False
    of_people: bool = False
    delay_s: float = 0.0
    every: int = 1
    done: bool = False

    def concerns(self, call: int, headers: Mapping[str, str]) -> bool:
        """True if the call with this number gets this answer."""
        return call % self.every == 0 and (not self.of_people or "Authorization" in headers)


@dataclass
class FaultyApi:
    """A gateway before the server on `upstream_port` (0: nobody is behind it)."""

    upstream_port: int = 0
    fault: ApiFault | None = None
    asked: list[str] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def faulty_api(upstream_port: int = 0, fault: ApiFault | None = None) -> Iterator[FaultyApi]:
    """A running gateway, in threads of this process."""
    api = FaultyApi(upstream_port, fault)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(api))
    server.daemon_threads = True
    api.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(api: FaultyApi) -> type[BaseHTTPRequestHandler]:
    class FaultyHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            api.asked.append(self.path)
            fault = api.fault
            if not fault or not fault.concerns(len(api.asked), dict(self.headers)):
                self._answer(*self._pass_on(body))
                return
            if fault.done:
                self._pass_on(body)
            time.sleep(fault.delay_s)
            self._answer(fault, fault.body.encode(), {})

        def _pass_on(self, body: bytes) -> tuple[ApiFault, bytes, dict[str, str]]:
            upstream = http.client.HTTPConnection("127.0.0.1", api.upstream_port, timeout=10)
            headers = {k: v for k, v in self.headers.items() if k.lower() != "accept-encoding"}
            upstream.request("POST", self.path, body, headers)
            answer = upstream.getresponse()
            found = {name: answer.headers[name] for name in _PASSED_ON if name in answer.headers}
            body = answer.read()
            upstream.close()
            return ApiFault(answer.status, content_type=""), body, found

        def _answer(self, fault: ApiFault, body: bytes, headers: dict[str, str]) -> None:
            with contextlib.suppress(OSError):  # who asked may have given up
                self._write(fault, body, headers)

        def _write(self, fault: ApiFault, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(fault.status)
            if fault.content_type:
                self.send_header("Content-Type", fault.content_type)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body) + (1 if fault.cut else 0)))
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = fault.cut

        def log_message(self, format: str, *args: object) -> None:
            pass

    return FaultyHandler
