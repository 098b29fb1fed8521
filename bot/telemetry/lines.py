"""One log for all processes: JSON lines on stdout, each written whole.

A write of up to PIPE_BUF bytes is never mixed with another process's (pipe(7)), so longer lines
are shortened. A log that cannot be written is lost, and one that nobody reads is waited for once;
the bot goes on.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TextIO, cast

_LONGEST = min(select.PIPE_BUF, 4096)
_SHORTENED = " … "
# A reader may be busy for a moment. One that sleeps gets what comes after it wakes.
_PATIENCE_MS = 200


class Lines:
    """A text stream for loggers, which write a line at a time."""

    def __init__(self, descriptor: int = 1) -> None:
        self._descriptor = descriptor
        self._asleep = False

    def write(self, text: str) -> int:
        data = text.encode("utf-8", "replace")
        if len(data) > _LONGEST:
            data = shortened(text).encode("utf-8", "replace")
        with contextlib.suppress(OSError):  # nobody reads the log, or its disk is full
            if self._has_room():
                os.write(self._descriptor, data)
        return len(text)

    def _has_room(self) -> bool:
        """Whether a write returns at once. A pipe says so while a line fits, a file always."""
        room = select.poll()
        room.register(self._descriptor, select.POLLOUT)
        self._asleep = not room.poll(0 if self._asleep else _PATIENCE_MS)
        return not self._asleep

    def flush(self) -> None:
        """Nothing waits."""


def stdout() -> TextIO:
    """Standard output for loggers of this process."""
    return cast(TextIO, Lines())


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
    Lines().write(dumped({**fields, "event": event, "level": level, "timestamp": now()}))


def dumped(fields: Mapping[str, object]) -> str:
    """One line of the log."""
    return json.dumps(fields, ensure_ascii=False, default=str) + "\n"


def now() -> str:
    """The time as it stands in the log, UTC."""
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")
