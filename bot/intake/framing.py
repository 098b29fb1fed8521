"""Decides when an HTTP request is complete, and counts refused requests.

It decides only when a request is whole; what it says is read by the server's own parser, which is
given these bytes and no others. So whatever the two might see differently, no thread waits."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from bot.process import metrics
from bot.process.log_lines import write_event

MAX_HEAD_BYTES = 64 * 1024
_LONGEST_CHUNK_LINE = 1024
_HEAD_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"[0-9]{1,15}")
_PLAIN_FIELD = re.compile(rb"([A-Za-z0-9-]+):[ \t]*([\t\x20-\x7e]*)")
_REQUEST_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,20} [!-~\x80-\xff]+ HTTP/1\.[01]")
_FIELD_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:")
_NEVER_IN_HEAD = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r[^\n]|(?<!\r)\n")
_FOR_A_PARSER = {"TRANSFER-ENCODING", "CONNECTION", "EXPECT", "UPGRADE"}
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?", re.DOTALL)

# `odd`: too large, or framed in a way that the server's parser refuses; nothing more is waited for.
State = Literal["coming", "whole", "odd"]

_EVERY_S = 60.0
_MOST_REASONS = 50
_OTHER = "other"


@dataclass(slots=True)
class Arrival:
    """The bytes of one connection from the beginning of a request on."""

    most_bytes: int
    state: State = "coming"
    expects_go_ahead: bool = False
    _data: bytearray = field(default_factory=bytearray)
    _scanned_bytes: int = 0  # how far the end of the head, or of a line, has been looked for
    _first: int = 0  # where the first line begins
    _line: int = 0  # where the line of the head begins that is not whole
    _body: int = 0  # where the body begins; 0 while the head is not whole
    _end: int = 0  # where the request ends; with chunks: where the next one begins
    _is_chunked: bool = False

    @property
    def has_begun(self) -> bool:
        return bool(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def add(self, data: bytes) -> None:
        """Takes what was received."""
        self._data += data
        if self.state == "coming":
            self.state = self._look()

    def take(self) -> bytes:
        """The request that is whole, or all that is there of an odd one; what follows is the
        beginning of the next."""
        size = self._end if self.state == "whole" else len(self._data)
        request = bytes(self._data[:size])
        rest = bytes(self._data[size:])
        self._data, self._scanned_bytes, self._body, self._end = bytearray(), 0, 0, 0
        self._first = self._line = 0
        self.state, self._is_chunked, self.expects_go_ahead = "coming", False, False
        if rest:
            self.add(rest)
        return request

    def _look(self) -> State:
        if not self._body:
            state = self._look_at_head()
            if not self._body:
                return state
        if self._is_chunked:
            return self._look_at_chunks()
        return "whole" if len(self._data) >= self._end else "coming"

    def _look_at_head(self) -> State:
        seen_bytes, self._scanned_bytes = self._scanned_bytes, len(self._data)
        at = self._data.find(_HEAD_END, max(0, seen_bytes - 3))
        if not self._is_sound(seen_bytes, at):
            return "odd"
        if at < 0:
            return "odd" if len(self._data) > MAX_HEAD_BYTES else "coming"
        fields = _fields(bytes(self._data[:at]))
        lengths, codings = fields.get(b"content-length", []), fields.get(b"transfer-encoding", [])
        length = int(lengths[0]) if lengths and _LENGTH.fullmatch(lengths[0]) else 0
        self._is_chunked = [coding.lower() for coding in codings] == [b"chunked"]
        sound = (self._is_chunked and not lengths) or (not codings and len(lengths) <= 1)
        if not sound or (lengths and not _LENGTH.fullmatch(lengths[0])) or length > self.most_bytes:
            return "odd"
        expectations = {value.lower() for value in fields.get(b"expect", [])}
        if expectations - {b"100-continue"}:
            return "odd"
        self._body = self._scanned_bytes = at + len(_HEAD_END)
        self._end = self._body + length
        self.expects_go_ahead = bool(expectations) and b" HTTP/1.1\r\n" in self._data[: self._body]
        return "coming"

    def _is_sound(self, seen_bytes: int, at: int) -> bool:
        """False if the head, which ends `at` (-1: not yet) and was looked at up to `seen_bytes`,
        can become no request."""
        end = at if at >= 0 else len(self._data)
        if not self._line and self._data.startswith(b"\r\n"):  # RFC 9112, section 2.2
            self._first = self._line = 2
        if _NEVER_IN_HEAD.search(self._data, max(0, seen_bytes - 1), end):
            return False
        while (stop := self._data.find(b"\r\n", self._line, end)) >= 0:
            if not self._is_sound_line(stop):
                return False
            self._line = stop + 2
        return at < 0 or self._line >= end or self._is_sound_line(end)

    def _is_sound_line(self, stop: int) -> bool:
        if self._line == self._first:
            return bool(_REQUEST_LINE.fullmatch(self._data, self._line, stop))
        return bool(_FIELD_NAME.match(self._data, self._line, stop))

    def _look_at_chunks(self) -> State:
        """`_end` is where the next chunk's line begins."""
        while (at := self._data.find(b"\r\n", self._end)) >= 0:
            size = _CHUNK_SIZE.fullmatch(self._data[self._end : at])
            if size is None:
                return "odd"
            if not int(size[1], 16):
                return self._look_at_trailers(at + 2)
            following = at + 2 + int(size[1], 16) + 2
            if following - self._body > self.most_bytes:
                return "odd"
            if following > len(self._data):
                return "coming"
            self._end = following
        return "odd" if len(self._data) - self._end > _LONGEST_CHUNK_LINE else "coming"

    def _look_at_trailers(self, start: int) -> State:
        """After the last chunk: an empty line, or fields and an empty line."""
        if self._data.startswith(b"\r\n", start):
            self._end = start + 2
            return "whole"
        at = self._data.find(_HEAD_END, start)
        if at < 0:
            return "odd" if len(self._data) - start > MAX_HEAD_BYTES else "coming"
        self._end = at + len(_HEAD_END)
        return "whole"


def plain_parts(request: bytes) -> tuple[dict[str, str], bytes] | None:
    """The header fields (names in upper case) and the body of a whole request. None where a parser
    has to decide what it says: where its head is not plain, or says how to go on."""
    head, _, body = request.partition(_HEAD_END)
    _, *lines = head.split(b"\r\n")
    matches = [_PLAIN_FIELD.fullmatch(line) for line in lines]
    fields = {
        one[1].decode().upper(): one[2].decode().rstrip(" \t") for one in matches if one is not None
    }
    if len(fields) < len(lines):
        return None
    if fields.get("CONNECTION") == "keep-alive":
        del fields["CONNECTION"]
    if _FOR_A_PARSER & fields.keys() or fields.get("CONTENT-LENGTH") != str(len(body)):
        return None
    return fields, body


def _fields(head: bytes) -> dict[bytes, list[bytes]]:
    """The values of each header field, by its name in lower case."""
    values_by_name: dict[bytes, list[bytes]] = {}
    for line in head.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        if colon:
            values_by_name.setdefault(name.strip().lower(), []).append(value.strip(b" \t"))
    return values_by_name


@dataclass
class _Count:
    said_at_s: float
    requests: int = 0


@dataclass
class RefusalCounts:
    """Counts from any thread. `clock` is monotonic seconds; `write` takes a line's fields."""

    clock: Callable[[], float] = time.monotonic
    write: Callable[..., None] = write_event
    _counts: dict[tuple[str, str], _Count] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, event: str, reason: str) -> None:
        """Counts one request. The first of a reason is logged at once."""
        with self._lock:
            if (event, reason) not in self._counts and len(self._counts) >= _MOST_REASONS:
                reason = _OTHER
            never = self.clock() - _EVERY_S
            self._counts.setdefault((event, reason), _Count(never)).requests += 1
        metrics.REFUSED.labels(reason=reason).inc()
        self.report()

    def report(self) -> None:
        """Logs the counts that are not logged yet, each a minute after its last line."""
        now = self.clock()
        with self._lock:
            due = [
                (key, one.requests)
                for key, one in self._counts.items()
                if one.requests and now - one.said_at_s >= _EVERY_S
            ]
            for key, _ in due:
                self._counts[key] = _Count(now)
        for (event, reason), requests in due:
            self.write(event, level="warning", reason=reason, requests=requests)


REFUSALS = RefusalCounts()
