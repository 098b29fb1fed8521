"""Writes the one log of all processes to stdout: lines of JSON, or for people at a terminal. Keeps
people's words out of it: exceptions and library messages are logged by kind and place.

A write of up to PIPE_BUF bytes is never mixed with another process's (pipe(7)), so longer lines
are shortened. Writing never waits for the reader; lines that cannot be written are dropped and
counted, and the bot goes on.

An exception quotes what it failed on, and a library does not know that its line holds something
that a person confided to the bot. This module works without structlog, because gunicorn's master
uses it.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import logging
import os
import select
import socket
import stat
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Mapping, MutableMapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal, NamedTuple, TextIO, cast

LogFormat = Literal["auto", "json", "text"]
_LONGEST = min(select.PIPE_BUF, 4096)
_ELLIPSIS = " … "

_OWN = ("event", "level", "timestamp", "logger", "stack")
_LEVELS = frozenset({"warning", "error", "critical"})

_KEPT_LINES = 1000
_FAREWELL_S = 0.5
_LONGEST_MESSAGE = 120


class LogLines:
    """A text stream for loggers, which write a line of JSON at a time. `format` auto: people read
    them on a terminal, programs elsewhere."""

    def __init__(self, descriptor: int = 1, format: LogFormat = "auto") -> None:
        self.format = format
        self._descriptor = descriptor
        self._outlet = NonblockingStdout(descriptor, lambda count: self._encode(_lost_line(count)))

    def write(self, text: str) -> int:
        self._outlet.write(self._encode(text))
        return len(text)

    def _encode(self, text: str) -> bytes:
        line = console_format(text) if self._is_for_people() else text
        data = line.encode("utf-8", "replace")
        return shortened_line(line).encode("utf-8", "replace") if len(data) > _LONGEST else data

    def _is_for_people(self) -> bool:
        return self.format == "text" or (self.format == "auto" and os.isatty(self._descriptor))

    def flush(self) -> None:
        """Nothing waits for us."""


@functools.cache
def _log_lines() -> LogLines:
    return LogLines()


def choose_log_format(format: LogFormat) -> None:
    """How the lines of this process look."""
    _log_lines().format = format


def log_stream() -> TextIO:
    """Standard output for loggers of this process."""
    return cast(TextIO, _log_lines())


def shortened_line(line: str) -> str:
    """The same JSON object with the middle of its longest texts left out, or the line cut off."""
    try:
        fields = json.loads(line)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        return line.encode()[: _LONGEST - 1].decode("utf-8", "ignore") + "\n"
    while len((text := json_line(fields)).encode()) > _LONGEST:
        name = max(fields, key=lambda name: len(str(fields[name])))
        value = str(fields[name])
        if len(value) <= len(_ELLIPSIS):
            return text.encode()[: _LONGEST - 1].decode("utf-8", "ignore") + "\n"
        keep = len(value) * 3 // 8
        fields[name] = value[:keep] + _ELLIPSIS + value[-keep:] if keep > 8 else "…"
    return text


def write_event(event: str, *, level: str = "info", **fields: object) -> None:
    """A line of a process that has no logger."""
    _log_lines().write(_line(event, level, **fields))


def _lost_line(lost_lines: int) -> str:
    return _line("log.lines_lost", "warning", lines=lost_lines)


def _line(event: str, level: str, **fields: object) -> str:
    return json_line({**fields, "event": event, "level": level, "timestamp": log_time()})


def json_line(fields: Mapping[str, object]) -> str:
    """One line of the log."""
    return json.dumps(fields, ensure_ascii=False, default=str) + "\n"


def log_time() -> str:
    """The time as it stands in the log, UTC."""
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def console_format(line: str) -> str:
    """`12:03:04 worker.started  slot=1` for a JSON object; other text without what a terminal would
    obey. Each ends with a newline."""
    try:
        fields = json.loads(line)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        return _visible(line.rstrip("\n")) + "\n"
    if fields.get("event") == "ready" and "address" in fields:
        return f"Ready: {_visible(str(fields['address']))}\n"
    event = _visible(str(fields.get("event")))
    return f"{_clock(fields)}{_level(fields)}{event}{_rest(fields)}{_stack(fields)}\n"


def _stack(fields: dict[str, Any]) -> str:
    lines = str(fields.get("stack", "")).splitlines()
    return "".join(f"\n    {_visible(line)}" for line in lines)


def _clock(fields: dict[str, Any]) -> str:
    """The time of this machine's clock, as that of a terminal is."""
    try:
        at = datetime.fromisoformat(str(fields["timestamp"])).astimezone()
    except (KeyError, ValueError):
        return ""
    return f"{at:%H:%M:%S} "


def _level(fields: dict[str, Any]) -> str:
    level = fields.get("level")
    return f"{str(level).upper()} " if level in _LEVELS else ""


def _rest(fields: dict[str, Any]) -> str:
    return "".join(
        f"  {_visible(name)}={_value(value)}" for name, value in fields.items() if name not in _OWN
    )


def _value(value: Any) -> str:
    if isinstance(value, str) and value and not any(c.isspace() or c in "\"'=" for c in value):
        return _visible(value)
    return _visible(json.dumps(value, ensure_ascii=False))


def _visible(text: str) -> str:
    """Without characters that move the cursor, hide text or change its order."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class OutputWay(NamedTuple):
    """`put_line` raises BlockingIOError where a write would wait."""

    put_line: Callable[[bytes], int]
    close: Callable[[], None]


class NonblockingStdout:
    """A descriptor that lines, of at most PIPE_BUF bytes, are written to: whole, in order, by any
    thread. `told` makes the line that says how many were lost: dropped here, or refused by a disk.
    """

    def __init__(self, descriptor: int, on_lost: Callable[[int], bytes]) -> None:
        self._descriptor = descriptor
        self._on_lost = on_lost
        self._known_file: tuple[int, int] | None = None
        self._way: OutputWay | None = None
        self._lock = threading.RLock()  # writing a line may bring forth another one
        self._waiting: deque[bytes] = deque()
        self._thread: threading.Thread | None = None
        self._lost_count = 0
        os.register_at_fork(after_in_child=self._begin)
        atexit.register(self._part)

    def write(self, line: bytes) -> None:
        """Raises nothing; a line that cannot be written is lost, and counted."""
        with self._lock:
            if not self._waiting and self._passes(line):
                return
            if len(self._waiting) == _KEPT_LINES:
                self._waiting.popleft()
                self._lost_count += 1
            self._waiting.append(line)
            if self._thread is None:
                self._thread = threading.Thread(target=self._drain, name="log", daemon=True)
                self._thread.start()

    def _begin(self) -> None:
        """Nothing waits here. After a fork the parent writes what waits there."""
        self._lock = threading.RLock()
        self._waiting = deque()
        self._thread = None
        self._lost_count = 0

    def _passes(self, line: bytes) -> bool:
        """Writes it unless that would wait. Whether it is done with: written, or lost."""
        try:
            put = self._find_way().put_line
            if self._lost_count:
                put(self._on_lost(self._lost_count))
                self._lost_count = 0
            put(line)
        except BlockingIOError:
            return False
        except OSError:  # the disk is full, or nobody will ever read this
            self._lost_count += 1
        return True

    def _find_way(self) -> OutputWay:
        """How to write there without waiting; looked up anew when it became something else."""
        is_ = os.fstat(self._descriptor)
        if self._way is None or self._known_file != (is_.st_dev, is_.st_ino):
            if self._way:
                self._way.close()
            self._way = _nonblocking_way(self._descriptor, is_.st_mode)
            self._known_file = is_.st_dev, is_.st_ino
        return self._way

    def _drain(self) -> None:
        """Writes what waits, until nothing does. Only this thread ever waits for the reader."""
        while True:
            room = select.poll()
            room.register(self._descriptor, select.POLLOUT)
            room.poll()
            with self._lock:
                while self._waiting and self._passes(self._waiting[0]):
                    self._waiting.popleft()
                if not self._waiting:
                    self._thread = None
                    return

    def _part(self) -> None:
        """At the end of the process: a last moment for the reader."""
        if thread := self._thread:
            thread.join(_FAREWELL_S)


def _nonblocking_way(descriptor: int, mode: int) -> OutputWay:
    if stat.S_ISSOCK(mode):
        socket_copy = socket.socket(fileno=os.dup(descriptor))
        return OutputWay(
            lambda line: socket_copy.send(line, socket.MSG_DONTWAIT), socket_copy.close
        )
    if stat.S_ISFIFO(mode) or os.isatty(descriptor):
        with contextlib.suppress(OSError):  # another user's, nobody reads it, or not Linux
            flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY
            again = os.open(f"/proc/self/fd/{descriptor}", flags)
            return OutputWay(lambda line: os.write(again, line), lambda: os.close(again))
    if stat.S_ISFIFO(mode):
        os.set_blocking(descriptor, False)  # for everybody who shares it, then
    return OutputWay(lambda line: os.write(descriptor, line), lambda: None)


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
        return f"{text.splitlines()[0][:_LONGEST_MESSAGE]} ({', '.join(safe_values)})"
    return text.partition("\n")[0].partition(":")[0][:_LONGEST_MESSAGE]


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
