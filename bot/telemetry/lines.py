"""One log for all processes: JSON lines on stdout, each written whole.

A write of up to PIPE_BUF bytes is never mixed with another process's (pipe(7)), so longer lines
are shortened. A log that cannot be written is lost; the bot goes on.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TextIO, cast

_LONGEST = min(select.PIPE_BUF, 4096)
_SHORTENED = " … "


class Lines:
    """A text stream for loggers, which write a line at a time."""

    def __init__(self, descriptor: int = 1) -> None:
        self._descriptor = descriptor

    def write(self, text: str) -> int:
        data = text.encode("utf-8", "replace")
        if len(data) > _LONGEST:
            data = shortened(text).encode("utf-8", "replace")
        with contextlib.suppress(OSError):  # nobody reads the log, or its disk is full
            os.write(self._descriptor, data)
        return len(text)

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
    while len((text := _dumped(fields)).encode()) > longest:
        name = max(fields, key=lambda name: len(str(fields[name])))
        value = str(fields[name])
        if len(value) <= len(_SHORTENED):
            return text.encode()[: longest - 1].decode("utf-8", "ignore") + "\n"
        keep = len(value) * 3 // 8
        fields[name] = value[:keep] + _SHORTENED + value[-keep:] if keep > 8 else "…"
    return text


def say(event: str, *, level: str = "info", **fields: object) -> None:
    """A line of a process that has no logger."""
    Lines().write(_dumped({**fields, "event": event, "level": level, "timestamp": _now()}))


class JsonFormatter(logging.Formatter):
    """A record of the standard library's loggers as such a line."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {"event": record.getMessage()}
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        about = {"level": record.levelname.lower(), "logger": record.name, "timestamp": _now()}
        return _dumped({**fields, **about}).rstrip("\n")


def logging_of(name: str) -> dict[str, Any]:
    """For `logging.config.dictConfig`: logger `name` and everything unnamed into this log."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": JsonFormatter}},
        "handlers": {
            "log": {"class": "logging.StreamHandler", "stream": stdout(), "formatter": "json"}
        },
        "root": {"level": "WARNING", "handlers": ["log"]},
        "loggers": {name: {"handlers": ["log"], "propagate": False}},
    }


def _dumped(fields: Mapping[str, object]) -> str:
    return json.dumps(fields, ensure_ascii=False, default=str) + "\n"


def _now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")
