"""Divides the body of a response into documents while it arrives. Pure.

Endpoints send server-sent events as JSON, one completion as an event stream, or one value a line.
So the lines decide. Source of events:
https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from bot.text.json_text import load_json

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
        yield from self._documents(complete.splitlines())

    def close(self) -> Iterator[bytes]:
        """The documents that nothing has closed."""
        yield from self._documents((*self._rest.splitlines(), b""))
        self._rest = b""
        yield from self._plain()

    def _documents(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        for line in lines:
            is_data = line.startswith(b"data:")
            while line.startswith(b"data:"):  # some proxies add a second one
                line = line[6:] if line[5:6] == b" " else line[5:]
            if is_data or (line and self._data and not line.startswith(_FIELDS)):
                self._data.append(line)  # also the next line of an object over several
            elif not line and self._data:
                if self.is_plain:
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
        return [load_json(data)]
    except ValueError:
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    values: list[Any] = []
    text = text.strip(_SPACES)
    while text or not values:
        value, end = _DECODER.raw_decode(text)
        values.append(value)
        text = text[end:].lstrip(_SPACES)
    return values
