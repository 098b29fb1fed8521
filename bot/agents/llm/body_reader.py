"""The JSON values in the body of a response, whatever form and media type it has. Pure.

Endpoints send server-sent events as JSON, one completion as an event stream, or one value a line.
So the lines decide. Source of events:
https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from bot.text.lenient_json import loads

_BOM = b"\xef\xbb\xbf"
_FIELDS = (b":", b"event:", b"id:", b"retry:")
_SPACES = " \t\r\n"
_DECODER = json.JSONDecoder(strict=False)


class BodyReader:
    """Puts together documents whose bytes arrive in pieces of any size: the data of each event, and
    what stands outside of events if it comes before any of them."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._outside: list[bytes] = []
        self._begun = False
        self.is_plain = True
        """True until an event has come."""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The documents that are complete now."""
        self._rest += chunk
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
        """The documents that nothing has closed."""
        for line in (*self._rest.splitlines(), b""):
            yield from self._line(line)
        self._rest = b""
        yield from self._plain()

    def _line(self, line: bytes) -> Iterator[bytes]:
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
        elif not line and self._data:
            yield from self._plain()
            self.is_plain = False
            yield b"\n".join(self._data)
            self._data.clear()
        elif line and self.is_plain and not line.startswith(_FIELDS):
            self._outside.append(line)

    def _plain(self) -> Iterator[bytes]:
        if self._outside:
            yield b"\n".join(self._outside)
            self._outside.clear()


def json_values(data: bytes | str) -> list[Any]:
    """The values in `data`, one after the other. Raises `ValueError` when it is anything else."""
    try:
        return [loads(data)]
    except ValueError:
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    values: list[Any] = []
    text = text.strip(_SPACES)
    while text or not values:
        value, end = _DECODER.raw_decode(text)
        values.append(value)
        text = text[end:].lstrip(_SPACES)
    return values
