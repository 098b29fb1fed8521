"""A TCP relay on loopback that can be shut: what a network or a service does to its callers."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

Mode = Literal["open", "refuse", "hang", "cut", "bad gateway", "starting", "full"]
_BAD_GATEWAY = (
    b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 11\r\n"
    b"Connection: close\r\n\r\nbad gateway"
)


def _fatal(code: str, words: str) -> bytes:
    """An ErrorResponse of Postgres (PostgreSQL, “Message Formats”)."""
    fields = f"SFATAL\0VFATAL\0C{code}\0M{words}\0\0".encode()
    return b"E" + (len(fields) + 4).to_bytes(4) + fields


_ANSWERS = {
    "bad gateway": _BAD_GATEWAY,
    "starting": _fatal("57P03", "the database system is starting up"),
    "full": _fatal("53300", "sorry, too many clients already"),
    "cut": b"",
}


class Door:
    """Passes connections on to `target`, a port or the path of a socket, while it is open.

    Otherwise a connection is refused, taken and never answered, cut when it has spoken, or answered
    as a gateway does whose service is away, or as a Postgres that takes no connections.
    """

    def __init__(self, target: int | Path) -> None:
        self._target = target
        self._mode: Mode = "open"
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port: int = self._listener.getsockname()[1]
        self._serve()

    def set(self, mode: Mode) -> None:
        """From now on; connections that are there are cut."""
        was, self._mode = self._mode, mode
        if mode == "refuse":
            self._listener.close()
        elif was == "refuse":
            self._listener = socket.create_server(("127.0.0.1", self.port), backlog=512)
            self._serve()
        for one in list(self._open):
            _end(one)

    def close(self) -> None:
        self._listener.close()
        for one in list(self._open):
            _end(one)

    def _serve(self) -> None:
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            if self._mode == "refuse":  # one that was still being waited for
                client.close()
                return
            self._open.add(client)
            threading.Thread(target=self._converse, args=(client,), daemon=True).start()

    def _converse(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            match self._mode:
                case "open":
                    self._pass_on(client)
                case "hang":
                    while client.recv(65536):
                        pass
                case mode:
                    client.recv(65536)
                    client.sendall(_ANSWERS[mode])
        self._open.discard(client)
        _end(client)

    def _pass_on(self, client: socket.socket) -> None:
        with _connected(self._target) as server:
            self._open.add(server)
            back = threading.Thread(target=_pump, args=(server, client), daemon=True)
            back.start()
            _pump(client, server)
            back.join()
            self._open.discard(server)


def _connected(target: int | Path) -> socket.socket:
    if isinstance(target, int):
        return socket.create_connection(("127.0.0.1", target))
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(target))
    return connection


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while block := source.recv(65536):
            target.sendall(block)
    _end(target)
    _end(source)


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


@contextmanager
def door_to(target: int | Path) -> Iterator[Door]:
    """An open door, gone afterwards."""
    door = Door(target)
    try:
        yield door
    finally:
        door.close()
