"""Where a log goes: writing to it never waits, whether somebody reads it or not.

A pipe or a terminal is opened a second time, so that only we do not wait there: the shell and other
programs share what we were given. What does not fit is kept for a thread that waits for the reader;
of more than that the oldest is dropped, and the log says how much.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import socket
import stat
import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

_KEPT_LINES = 1000
_FAREWELL_S = 0.5


class Way(NamedTuple):
    """`put` raises BlockingIOError where a write would wait."""

    put: Callable[[bytes], int]
    close: Callable[[], None]


class Outlet:
    """A descriptor that lines, of at most PIPE_BUF bytes, are written to: whole, in order, by any
    thread. `told` makes the line that says how many were lost: dropped here, or refused by a disk.
    """

    def __init__(self, descriptor: int, on_lost: Callable[[int], bytes]) -> None:
        self._descriptor = descriptor
        self._told = on_lost
        self._known: tuple[int, int] | None = None
        self._way: Way | None = None
        self._lock = threading.RLock()  # writing a line may bring forth another one
        self._waiting: deque[bytes] = deque()
        self._thread: threading.Thread | None = None
        self._lost = 0
        os.register_at_fork(after_in_child=self._begin)
        atexit.register(self._part)

    def write(self, line: bytes) -> None:
        """Raises nothing; a line that cannot be written is lost, and counted."""
        with self._lock:
            if not self._waiting and self._passes(line):
                return
            if len(self._waiting) == _KEPT_LINES:
                self._waiting.popleft()
                self._lost += 1
            self._waiting.append(line)
            if self._thread is None:
                self._thread = threading.Thread(target=self._drain, name="log", daemon=True)
                self._thread.start()

    def _begin(self) -> None:
        """Nothing waits here. After a fork the parent writes what waits there."""
        self._lock = threading.RLock()
        self._waiting = deque()
        self._thread = None
        self._lost = 0

    def _passes(self, line: bytes) -> bool:
        """Writes it unless that would wait. Whether it is done with: written, or lost."""
        try:
            put = self._found().put
            if self._lost:
                put(self._told(self._lost))
                self._lost = 0
            put(line)
        except BlockingIOError:
            return False
        except OSError:  # the disk is full, or nobody will ever read this
            self._lost += 1
        return True

    def _found(self) -> Way:
        """How to write there without waiting; looked up anew when it became something else."""
        is_ = os.fstat(self._descriptor)
        if self._way is None or self._known != (is_.st_dev, is_.st_ino):
            if self._way:
                self._way.close()
            self._way = _without_waiting(self._descriptor, is_.st_mode)
            self._known = is_.st_dev, is_.st_ino
        return self._way

    def _drain(self) -> None:
        """Writes what waits, until nothing does. Only this thread ever waits for the reader."""
        while True:
            room = select.poll()
            room.register(self._descriptor, select.POLLOUT)
            room.poll()
            with self._lock:
                while self._waiting and self._passes(self._waiting[0]):
                    self._waiting.popleft()
                if not self._waiting:
                    self._thread = None
                    return

    def _part(self) -> None:
        """At the end of the process: a last moment for the reader."""
        if thread := self._thread:
            thread.join(_FAREWELL_S)


def _without_waiting(descriptor: int, mode: int) -> Way:
    if stat.S_ISSOCK(mode):
        socket_copy = socket.socket(fileno=os.dup(descriptor))
        return Way(lambda line: socket_copy.send(line, socket.MSG_DONTWAIT), socket_copy.close)
    if stat.S_ISFIFO(mode) or os.isatty(descriptor):
        with contextlib.suppress(OSError):  # another user's, nobody reads it, or not Linux
            flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY
            again = os.open(f"/proc/self/fd/{descriptor}", flags)
            return Way(lambda line: os.write(again, line), lambda: os.close(again))
    if stat.S_ISFIFO(mode):
        os.set_blocking(descriptor, False)  # for everybody who shares it, then
    return Way(lambda line: os.write(descriptor, line), lambda: None)
