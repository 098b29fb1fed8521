"""One log for all processes: lines on stdout, each written whole. They are JSON, or readable ones
at a terminal (`LOG_FORMAT`).

A write of up to PIPE_BUF bytes is never mixed with another process's (pipe(7)), so longer lines
are shortened. A log that cannot be written is lost; the bot goes on.
"""

from __future__ import annotations

import functools
import json
import os
import select
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal, TextIO, cast

from bot.process.outlet import Outlet
from bot.process.readable import readable

LogFormat = Literal["auto", "json", "text"]

_LONGEST = min(select.PIPE_BUF, 4096)
_SHORTENED = " … "


class Lines:
    """A text stream for loggers, which write a line of JSON at a time. `format` auto: people read
    them on a terminal, programs elsewhere."""

    def __init__(self, descriptor: int = 1, format: LogFormat = "auto") -> None:
        self.format = format
        self._descriptor = descriptor
        self._outlet = Outlet(descriptor, lambda lost: self._encoded(_told(lost)))

    def write(self, text: str) -> int:
        self._outlet.write(self._encoded(text))
        return len(text)

    def _encoded(self, text: str) -> bytes:
        line = readable(text) if self._is_for_people() else text
        data = line.encode("utf-8", "replace")
        return shortened(line).encode("utf-8", "replace") if len(data) > _LONGEST else data

    def _is_for_people(self) -> bool:
        return self.format == "text" or (self.format == "auto" and os.isatty(self._descriptor))

    def flush(self) -> None:
        """Nothing waits for us."""


@functools.cache
def _stdout() -> Lines:
    return Lines()


def choose(format: LogFormat) -> None:
    """How the lines of this process look."""
    _stdout().format = format


def stdout() -> TextIO:
    """Standard output for loggers of this process."""
    return cast(TextIO, _stdout())


def shortened(line: str, longest: int = _LONGEST) -> str:
    """The same JSON object with the middle of its longest texts left out, or the line cut off."""
    try:
        fields = json.loads(line)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        return line.encode()[: longest - 1].decode("utf-8", "ignore") + "\n"
    while len((text := dumped(fields)).encode()) > longest:
        name = max(fields, key=lambda name: len(str(fields[name])))
        value = str(fields[name])
        if len(value) <= len(_SHORTENED):
            return text.encode()[: longest - 1].decode("utf-8", "ignore") + "\n"
        keep = len(value) * 3 // 8
        fields[name] = value[:keep] + _SHORTENED + value[-keep:] if keep > 8 else "…"
    return text


def say(event: str, *, level: str = "info", **fields: object) -> None:
    """A line of a process that has no logger."""
    _stdout().write(_line(event, level, **fields))


def _told(lost_lines: int) -> str:
    return _line("log.lines_lost", "warning", lines=lost_lines)


def _line(event: str, level: str, **fields: object) -> str:
    return dumped({**fields, "event": event, "level": level, "timestamp": now()})


def dumped(fields: Mapping[str, object]) -> str:
    """One line of the log."""
    return json.dumps(fields, ensure_ascii=False, default=str) + "\n"


def now() -> str:
    """The time as it stands in the log, UTC."""
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")
