"""Trouble on demand, and a record of every call the app made.

A fault matches a path prefix and a method, at most `times` times. It delays, and then either
answers with a status, code, headers and body of its own, or (`drop`) lets the call take effect
and cuts the connection, so that the caller never learns what happened.
"""

import json
import re
import socket
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

KEPT_REQUESTS = 20_000
_SECRETS = ("app_secret", "client_secret")
_SECRET_IN_FORM = re.compile(r"(?<=client_secret=)[^&]*")


@dataclass
class PreparedFault:
    """One prepared trouble; `left` counts down to 0, None never ends."""

    path_prefix: str
    path_suffix: str = ""
    method: str = ""
    status: int = 200
    code: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    delay_s: float = 0.0
    left: int | None = None
    drop: bool = False

    def matches(self, method: str, path: str) -> bool:
        """Whether it hits this call and is not used up."""
        if self.left == 0 or (self.method and self.method != method):
            return False
        return path.startswith(self.path_prefix) and path.endswith(self.path_suffix)

    @property
    def answers(self) -> bool:
        """Whether it answers in place of the platform."""
        return not self.drop and (
            self.code is not None or self.body is not None or self.status != 200
        )


@dataclass
class AppCall:
    """One call of the app. `client_port` tells connections apart."""

    number: int
    at_ms: int
    method: str
    path: str
    query: dict[str, str]
    raw: bytes
    client_port: int
    status: int = 0

    def view(self) -> dict[str, Any]:
        """The call for a test; secrets are masked."""
        return {
            "number": self.number,
            "at_ms": self.at_ms,
            "method": self.method,
            "path": self.path,
            "query": self.query,
            "body": _masked(self.raw),
            "client_port": self.client_port,
            "status": self.status,
        }


class Switchboard:
    """The faults and the calls. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[PreparedFault] = []
        self._count = 0
        self.calls: deque[AppCall] = deque(maxlen=KEPT_REQUESTS)

    def add(self, fault: PreparedFault) -> None:
        """Prepare a trouble; older ones go first."""
        with self._lock:
            self._faults.append(fault)

    def clear(self) -> None:
        """No more trouble."""
        with self._lock:
            self._faults.clear()

    def forget_calls(self) -> None:
        """Empty the record of calls."""
        with self._lock:
            self.calls.clear()

    def take(self, method: str, path: str) -> PreparedFault | None:
        """The first fault that matches, counted down."""
        if not self._faults:
            return None
        with self._lock:
            for fault in self._faults:
                if fault.matches(method, path):
                    fault.left = None if fault.left is None else fault.left - 1
                    return fault
        return None

    def record(
        self, method: str, path: str, query: dict[str, str], raw: bytes, client_port: int
    ) -> AppCall:
        """Note a call."""
        with self._lock:
            self._count += 1
            call = AppCall(
                self._count, int(time.time() * 1000), method, path, query, raw, client_port
            )
            self.calls.append(call)
        return call


def cut_connection(environ: dict[str, Any]) -> bool:
    """Close the caller's socket, if the server gives it away (`sandbox.server` and gunicorn do)."""
    connection = environ.get("sandbox.socket") or environ.get("gunicorn.socket")
    if connection is None:
        return False
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return True
    return True


def _masked(raw: bytes) -> Any:
    try:
        body = json.loads(raw) if raw else None
    except ValueError:
        return _SECRET_IN_FORM.sub("***", raw.decode("utf-8", "replace"))
    if isinstance(body, dict):
        return {name: "***" if name in _SECRETS else value for name, value in body.items()}
    return body
