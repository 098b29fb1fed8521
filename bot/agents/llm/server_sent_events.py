"""Server-sent events as endpoints of models send them: bytes in, the data of events out. Pure.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

from __future__ import annotations

from collections.abc import Iterator

_BOM = b"\xef\xbb\xbf"


class EventReader:
    """Puts together events whose bytes arrive in pieces of any size."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._begun = False

    def feed(self, received: bytes) -> Iterator[bytes]:
        """The data of each event that is complete now."""
        self._rest += received
        if not self._begun:
            if len(self._rest) < len(_BOM) and _BOM.startswith(self._rest):
                return
            self._begun = True
            self._rest = self._rest.removeprefix(_BOM)
        # A line feed may still follow a carriage return at the end.
        end = 1 + max(self._rest.rfind(b"\n"), self._rest.rfind(b"\r", 0, -1))
        complete, self._rest = self._rest[:end], self._rest[end:]
        for line in complete.splitlines():
            yield from self._line(line)

    def close(self) -> Iterator[bytes]:
        """The data of an event that was not closed by an empty line."""
        for line in (*self._rest.splitlines(), b""):
            yield from self._line(line)
        self._rest = b""

    def _line(self, line: bytes) -> Iterator[bytes]:
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
        elif not line and self._data:
            yield b"\n".join(self._data)
            self._data.clear()
