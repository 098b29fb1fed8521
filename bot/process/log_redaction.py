"""Keeps people's words out of the log: exceptions and library messages by kind and place.

An exception quotes what it failed on, and a library's line is written by people who do not know
that it holds what somebody confided to a bot. This module works without structlog; gunicorn's
master uses it."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Mapping, MutableMapping
from types import TracebackType
from typing import Any

from bot.process.lines import json_line, log_stream, log_time, write_event

_LONGEST = 120


def exception_kinds(failure: BaseException) -> str:
    """The type of an exception, and of those it came from."""
    names = [type(failure).__name__]
    while (cause := failure.__cause__ or failure.__context__) and len(names) < 5:
        names.append(type(cause).__name__)
        failure = cause
    return " from ".join(names)


def stack_text(trace: TracebackType | None) -> str:
    """The lines of code it went through."""
    return "".join(traceback.format_tb(trace))


def redact_exception(
    _logger: object, _method: str, line: MutableMapping[str, Any]
) -> Mapping[str, Any]:
    """For structlog, instead of the exception's text."""
    exc_info = line.pop("exc_info", None)
    failure = sys.exc_info()[1] if exc_info is True else exc_info
    if isinstance(failure, tuple):
        failure = failure[1]
    if isinstance(failure, BaseException):
        line.update(error=exception_kinds(failure), stack=stack_text(failure.__traceback__))
    return line


def library_message(record: logging.LogRecord) -> str:
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
        write_event(
            "process.broken", level="error", error=exception_kinds(failure), stack=stack_text(trace)
        )

    def report(hook_args: Any) -> None:
        if hook_args.exc_value is not None:
            uncaught(hook_args.exc_type, hook_args.exc_value, hook_args.exc_traceback)

    sys.excepthook = uncaught
    sys.unraisablehook = threading.excepthook = report


def _without_words(value: object) -> str:
    if isinstance(value, BaseException):
        return exception_kinds(value)
    return str(value) if isinstance(value, int | float) else "…"


class JsonFormatter(logging.Formatter):
    """A record of the standard library's loggers as such a line; whole from logger `trusted`."""

    def __init__(self, trusted_name: str = "") -> None:
        super().__init__()
        self._trusted_name = trusted_name

    def format(self, record: logging.LogRecord) -> str:
        is_trusted = record.name == self._trusted_name
        fields: dict[str, Any] = {
            "event": record.getMessage() if is_trusted else library_message(record)
        }
        if record.exc_info and (failure := record.exc_info[1]):
            fields |= {
                "error": exception_kinds(failure),
                "stack": stack_text(failure.__traceback__),
            }
        about = {"level": record.levelname.lower(), "logger": record.name, "timestamp": log_time()}
        return json_line({**fields, **about}).rstrip("\n")


def logging_config(name: str) -> dict[str, Any]:
    """For `logging.config.dictConfig`: logger `name` and everything unnamed into this log."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": JsonFormatter, "trusted_name": name}},
        "handlers": {
            "log": {"class": "logging.StreamHandler", "stream": log_stream(), "formatter": "json"}
        },
        "root": {"level": "WARNING", "handlers": ["log"]},
        "loggers": {name: {"handlers": ["log"], "propagate": False}},
    }
