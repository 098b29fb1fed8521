"""Connections that keep a server waiting, as a single laptop can open them by the hundred."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_HEAD = b"POST /webhook/event HTTP/1.1\r\nHost: bot\r\nContent-Type: application/json\r\n"
_PAUSE_S = 1.0


@dataclass(frozen=True)
class Manner:
    """What a connection sends at once, and the byte of which it sends one each second."""

    at_once: bytes
    then: bytes = b""


MANNERS = {
    "says nothing": Manner(b""),
    "never ends its request line": Manner(b"POST /webhook", b"t"),
    "never ends its headers": Manner(_HEAD + b"X-Slow: ", b"a"),
    "never ends its body": Manner(_HEAD + b"Content-Length: 100000\r\n\r\n", b"x"),
    "never ends its chunks": Manner(_HEAD + b"Transfer-Encoding: chunked\r\n\r\nfffff\r\n", b"x"),
    "is answered and stays": Manner(b"GET /healthz HTTP/1.0\r\n\r\n"),
    "is answered and asks no more": Manner(b"GET /healthz HTTP/1.1\r\nHost: bot\r\n\r\n"),
    "never reads its answers": Manner(b"GET /healthz HTTP/1.1\r\nHost: bot\r\n\r\n" * 3000),
}


class SlowSenders:
    """Open connections; what the server closes is opened again."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._open: dict[socket.socket, Manner] = {}
        self._stop = threading.Event()

    def connect(self, manner: Manner) -> None:
        with contextlib.suppress(OSError):
            one = socket.socket()
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.settimeout(2)
            one.connect(("127.0.0.1", self._port))
            one.setblocking(False)
            self._open[one] = manner
            one.send(manner.at_once)

    def drip(self) -> None:
        """Until `close`."""
        while not self._stop.wait(_PAUSE_S):
            for one, manner in list(self._open.items()):
                if _is_closed(one, manner):
                    del self._open[one]
                    one.close()
                    self.connect(manner)

    def close(self) -> None:
        self._stop.set()
        for one in list(self._open):
            one.close()


def _is_closed(one: socket.socket, manner: Manner) -> bool:
    """Sends the next byte; whether nobody takes it any more."""
    try:
        one.send(manner.then)
        return bool(manner.then) and one.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


@contextlib.contextmanager
def slow_senders(port: int, manners: Iterable[Manner], count: int) -> Iterator[SlowSenders]:
    """So many connections of these manners, for as long as the block takes."""
    senders = SlowSenders(port)
    for manner in itertools.islice(itertools.cycle(manners), count):
        senders.connect(manner)
    dripping = threading.Thread(target=senders.drip, daemon=True)
    dripping.start()
    time.sleep(_PAUSE_S)
    try:
        yield senders
    finally:
        senders.close()
        dripping.join(5)
