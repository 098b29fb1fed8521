"""Reads the responses of model endpoints: divides a body into documents while it arrives, joins the
pieces of a text, which some endpoints repeat or replace, and finds how long a pause a refusal asks
for. Pure.

Endpoints send server-sent events as JSON, one completion as an event stream, or one value a line.
So the lines decide. Source of events:
https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation

Sources of pauses: RFC 9110 (Retry-After: seconds or a date); OpenAI and Azure (retry-after-ms,
x-ratelimit-reset-requests: `1m2.5s`); Anthropic (anthropic-ratelimit-tokens-reset: an RFC 3339
date); OpenRouter (X-RateLimit-Reset: milliseconds since the epoch); Gemini (google.rpc.RetryInfo in
the body).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import takewhile
from operator import eq
from typing import Any

from bot.text.json_text import load_json

_BOM = b"\xef\xbb\xbf"
_FIELDS = (b":", b"event:", b"id:", b"retry:")
_BEGINNINGS = (b"{", b"[DONE]")
_SPACES = " \t\r\n"
_DECODER = json.JSONDecoder(strict=False)
_SECONDS_OF_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TIME_SPAN = re.compile(r"(?:\d{1,15}(?:\.\d{1,9})?(?:ms|[smhd]))+", re.ASCII)
_TIME_SPAN_PARTS = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)(ms|[smhd])", re.ASCII)
_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_RESET_HEADER = re.compile(r"ratelimit[\w-]{0,60}reset")
_EPOCH_S, _EPOCH_MS = 1e9, 1e12
_LONGEST_DOUBTFUL_S = 8.0

# Shorter texts may say the same twice: "no" and "no", "1" and "1".
SURE = 16
PAIRED = 6  # pieces

_ALIKE = 8  # characters, of two beginnings where the endpoint says that it begins again

# Characters; no card shows as much. What follows is not read.
MOST_TEXT = 100_000


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
            if is_data and self._is_another(line):
                yield from self._event()
            if is_data or (line and self._data and not line.startswith(_FIELDS)):
                self._data.append(line)  # also the next line of an object over several
            elif not line and self._data:
                yield from self._event()
            elif line and self.is_plain and not line.startswith(_FIELDS):
                self._outside.append(line)

    def _is_another(self, line: bytes) -> bool:
        """True if the line begins an event of its own, although none ended the one before."""
        return bool(self._data) and self._data[-1].endswith(b"}") and line.startswith(_BEGINNINGS)

    def _event(self) -> Iterator[bytes]:
        if self.is_plain:
            yield from self._plain()
            self.is_plain = False
        yield b"\n".join(self._data)
        self._data.clear()

    def _plain(self) -> Iterator[bytes]:
        if self._outside:
            yield b"\n".join(self._outside)
            self._outside.clear()


class StreamedText:
    """A text as far as it has come. A last piece that repeats all others, and pieces that each
    begin with the one before, replace the text. Where every piece comes twice, one is left out.
    Where the endpoint says that it may begin again, the words decide (`mark_restart`)."""

    __slots__ = ("_before", "_count", "_grows", "_is_marked", "_is_paired", "_once", "_repeated",
                 "_seam", "_varies", "last")  # fmt: skip

    def __init__(self) -> None:
        self._before = self.last = self._once = ""
        self._count, self._grows = 0, True
        self._is_paired, self._varies = True, False
        self._seam = self._repeated = 0  # where it may begin again; how much of it has come again
        self._is_marked = False

    def __str__(self) -> str:
        if self._is_paired and self._varies and self._count >= PAIRED:
            return self._once
        is_sure = self._count > 2 or (self._count == 2 and len(self._before) >= SURE)
        if is_sure and self._grows:
            return self.last
        return self._before if is_sure and self._is_again else self._before + self.last

    @property
    def _is_again(self) -> bool:
        if len(self._before) < SURE:
            return self.last == self._before
        return self.last.strip() == self._before.strip()

    @property
    def is_full(self) -> bool:
        """True if it is longer than any card shows."""
        return len(self._before) + len(self.last) > MOST_TEXT

    def add(self, piece: str) -> None:
        is_longer = len(piece) > len(self.last) or len(piece) >= SURE
        self._grows = self._grows and is_longer and piece.startswith(self.last)
        if self._count % 2:
            self._is_paired = self._is_paired and piece == self.last
        elif self._is_paired:
            self._varies = self._varies or bool(self._count and piece != self.last)
            self._once += piece
        self._before += self.last
        self.last = piece
        self._count += 1
        self._look_for_restart()

    def mark_restart(self) -> None:
        """Says that the endpoint may begin again with the next piece."""
        self._is_marked, self._seam, self._repeated = True, len(self._before) + len(self.last), 0

    def _look_for_restart(self) -> None:
        if not self._is_marked:
            return
        left = self.last[: self._seam - self._repeated]
        if self._before.startswith(left, self._repeated):
            self._repeated += len(left)
            if self._repeated == self._seam:
                self._restart()
            return
        pairs = map(eq, left, self._before[self._repeated :])
        self._repeated += sum(takewhile(bool, pairs))
        if self._repeated >= _ALIKE:
            self._restart()
        self._is_marked = False

    def _restart(self) -> None:
        self._before = self._before[self._seam :]
        self._is_marked = False
        self._count, self._grows, self._is_paired = max(self._count, 3), False, False


class RestartSigns:
    """Tells where a server may give its answer from the beginning again: under another id, or with
    a role after pieces without one. A server that goes on elsewhere does the same, so that the
    words decide."""

    def __init__(self) -> None:
        self._id, self._pieces, self._has_role = "", 0, True

    def begins_again(self, id: str, *, has_role: bool) -> bool:
        """Takes the next piece. Ids that are new for every piece say nothing."""
        is_other = bool(id) and id != self._id
        begins = (is_other and self._pieces > 1) or (has_role and not self._has_role)
        self._pieces = 1 if is_other else self._pieces + 1
        self._id, self._has_role = id or self._id, has_role
        return begins


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


def wished_pause_s(headers: Mapping[str, str], error: Mapping[str, Any], now_s: float) -> float:
    """Returns the seconds to wait; 0 if nothing says it. `error`: the error object of the body;
    `now_s`: seconds since the epoch."""
    values = {name.lower(): value.strip() for name, value in headers.items()}
    if span_ms := values.get("retry-after-ms"):
        values.setdefault("retry-after", f"{span_ms}ms")
    stated_pauses = [values.get("retry-after", ""), *_retry_infos(error)]
    waits_s = (_seconds(one, now_s) for one in stated_pauses)
    return next((one for one in waits_s if one), None) or _until_reset_s(values, now_s)


def _until_reset_s(headers: Mapping[str, str], now_s: float) -> float:
    """Until what is used up is there again. If nothing is said to be, a full quota is not worth
    waiting for: until the first of all, and not for long."""
    waits_s = {
        name: _seconds(headers[name], now_s) for name in headers if _RESET_HEADER.search(name)
    }
    used_up = [
        wait_s for name, wait_s in waits_s.items()
        if headers.get(name.replace("reset", "remaining")) == "0"
    ]  # fmt: skip
    return max(used_up) if used_up else min(min(waits_s.values(), default=0.0), _LONGEST_DOUBTFUL_S)


def _retry_infos(error: Mapping[str, Any]) -> Iterator[str]:
    details = error.get("details")
    for one in details if isinstance(details, list) else ():
        if isinstance(one, dict) and isinstance(delay := one.get("retryDelay"), str):
            yield delay


def _seconds(value: str, now_s: float) -> float:
    """A span or a point in time, in any of its forms; 0 for what is none."""
    if _NUMBER.fullmatch(value):
        number = float(value)
        if number < _EPOCH_S:
            return number
        return max(0.0, (number / 1000 if number >= _EPOCH_MS else number) - now_s)
    if _TIME_SPAN.fullmatch(value):
        return sum(
            float(number) * _SECONDS_OF_UNIT[unit]
            for number, unit in _TIME_SPAN_PARTS.findall(value)
        )
    moment = _reset_moment(value)
    return max(0.0, moment.timestamp() - now_s) if moment else 0.0


def _reset_moment(value: str) -> datetime | None:
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = parse(value)
        except (ValueError, OverflowError):
            continue
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None
