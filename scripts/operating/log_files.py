"""Reads growing log files, across rotation and truncation, and standard input."""

from __future__ import annotations

import os
import queue
import sys
import threading
from pathlib import Path
from typing import IO, Protocol

_BLOCK = 1 << 20


class LogSource(Protocol):
    """Lines that have come since the last call."""

    def lines(self) -> list[str]: ...

    def close(self) -> None: ...


class LogFile:
    """A log file from its beginning. It may be missing, rotated away, or cut back at any time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None
        self._rest = b""

    def lines(self) -> list[str]:
        """The whole lines that are new; the rest of an unfinished one comes with a later call."""
        found = self._read()
        if self._was_replaced():
            self.close()
            if self._rest:  # the last line of the file before, which nobody will finish
                found.append(_text(self._rest))
                self._rest = b""
            found += self._read()
        return found

    def close(self) -> None:
        if self._file:
            self._file.close()
        self._file = None

    def _read(self) -> list[str]:
        if self._file is None and not self._open():
            return []
        assert self._file is not None  # noqa: S101 - opened just now
        if os.fstat(self._file.fileno()).st_size < self._file.tell():
            self._file.seek(0)
            self._rest = b""
        found: list[str] = []
        while block := self._file.read(_BLOCK):
            *whole, self._rest = (self._rest + block).split(b"\n")
            found += map(_text, whole)
        return found

    def _open(self) -> bool:
        try:
            self._file = self._path.open("rb")
        except FileNotFoundError:
            return False
        return True

    def _was_replaced(self) -> bool:
        if self._file is None:
            return False
        try:
            current = self._path.stat()
        except FileNotFoundError:
            return False  # between two files: what is still written goes to the old one
        opened = os.fstat(self._file.fileno())
        return (current.st_dev, current.st_ino) != (opened.st_dev, opened.st_ino)


class StandardInput:
    """Standard input, read by a thread so that the screen is refreshed meanwhile."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._thread = threading.Thread(
            target=self._read, args=(stream or sys.stdin,), name="stdin", daemon=True
        )
        self._thread.start()

    def wait(self) -> None:
        """Until the input has ended."""
        self._thread.join()

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()

    def lines(self) -> list[str]:
        return [self._lines.get() for _ in range(self._lines.qsize())]

    def close(self) -> None:
        """The thread ends with its input."""

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            self._lines.put(line)


def _text(line: bytes) -> str:
    return line.decode("utf-8", errors="replace")
