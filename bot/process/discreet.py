"""What the log says of exceptions and of libraries: kinds and places, never their words.

An exception quotes what it failed on, a database's error the row, a parser's its input; and a
library's line is written by people who do not know that it holds what somebody confided to a bot.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Mapping, MutableMapping
from types import TracebackType
from typing import Any

from bot.process.lines import say

_LONGEST = 120


def kinds(failure: BaseException) -> str:
    """The type of an exception, and of those it came from."""
    names = [type(failure).__name__]
    while (cause := failure.__cause__ or failure.__context__) and len(names) < 5:
        names.append(type(cause).__name__)
        failure = cause
    return " from ".join(names)


def places(trace: TracebackType | None) -> str:
    """The lines of code it went through."""
    return "".join(traceback.format_tb(trace))


def by_kind(_logger: object, _method: str, line: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """For structlog, instead of the exception's text."""
    exc_info = line.pop("exc_info", None)
    failure = sys.exc_info()[1] if exc_info is True else exc_info
    if isinstance(failure, tuple):
        failure = failure[1]
    if isinstance(failure, BaseException):
        line.update(error=kinds(failure), stack=places(failure.__traceback__))
    return line


def of_library(record: logging.LogRecord) -> str:
    """The constant part of a library's message: its values are left out, but kinds and numbers."""
    text = str(record.msg)
    if record.args:
        values = record.args.values() if isinstance(record.args, Mapping) else record.args
        safe_values = [_without_words(value) for value in values]
        return f"{text.splitlines()[0][:_LONGEST]} ({', '.join(safe_values)})"
    return text.partition("\n")[0].partition(":")[0][:_LONGEST]


def watch_uncaught() -> None:
    """What nobody catches, in whatever thread, becomes a line of the log too."""

    def uncaught(kind: type[BaseException], failure: BaseException, trace: Any) -> None:
        if issubclass(kind, KeyboardInterrupt):
            return
        say("process.broken", level="error", error=kinds(failure), stack=places(trace))

    def reported(hook_args: Any) -> None:
        if hook_args.exc_value is not None:
            uncaught(hook_args.exc_type, hook_args.exc_value, hook_args.exc_traceback)

    sys.excepthook = uncaught
    sys.unraisablehook = threading.excepthook = reported


def _without_words(value: object) -> str:
    if isinstance(value, BaseException):
        return kinds(value)
    return str(value) if isinstance(value, int | float) else "…"
