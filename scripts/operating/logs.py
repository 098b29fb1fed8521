"""The bot's log: growing files, across rotation and truncation, and the report of a time window.

The lines are those of `bot.process.logs`; anything else, and half lines, are counted and skipped.
"""

from __future__ import annotations

import json
import math
import os
import queue
import sys
import threading
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Protocol

from bot.text.languages import Sentence

_BLOCK = 1 << 20
# A turn that began this long ago (s) and never ended was lost with its process.
_LOST_AFTER_S = 600.0
_ABSURD = 1e15
_STAGES = {
    "ack_ms": "ack",
    "memory_load_ms": "memory load",
    "model_ms": "model",
    "memory_save_ms": "memory save",
    "send_ms": "send",
}
# A memory that is away is told of every 30 s; after this long (s) its worker was lost, too.
_AWAY_UNTOLD_S = 90.0
_ERRORS = frozenset({"error", "critical", "exception"})


class LogSource(Protocol):
    """Lines that have come since the last call."""

    def lines(self) -> list[str]: ...

    def close(self) -> None: ...


class LogFile:
    """A log file from its beginning. It may be missing, rotated away, or cut back at any time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None
        self._rest = b""

    def lines(self) -> list[str]:
        """The whole lines that are new; the rest of an unfinished one comes with a later call."""
        found = self._read()
        if self._was_replaced():
            self.close()
            if self._rest:  # the last line of the file before, which nobody will finish
                found.append(_text(self._rest))
                self._rest = b""
            found += self._read()
        return found

    def close(self) -> None:
        if self._file:
            self._file.close()
        self._file = None

    def _read(self) -> list[str]:
        if self._file is None and not self._open():
            return []
        assert self._file is not None  # noqa: S101 - opened just now
        if os.fstat(self._file.fileno()).st_size < self._file.tell():
            self._file.seek(0)
            self._rest = b""
        found: list[str] = []
        while block := self._file.read(_BLOCK):
            *whole, self._rest = (self._rest + block).split(b"\n")
            found += map(_text, whole)
        return found

    def _open(self) -> bool:
        try:
            self._file = self._path.open("rb")
        except FileNotFoundError:
            return False
        return True

    def _was_replaced(self) -> bool:
        if self._file is None:
            return False
        try:
            current = self._path.stat()
        except FileNotFoundError:
            return False  # between two files: what is still written goes to the old one
        opened = os.fstat(self._file.fileno())
        return (current.st_dev, current.st_ino) != (opened.st_dev, opened.st_ino)


class StandardInput:
    """Standard input, read by a thread so that the screen is refreshed meanwhile."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._thread = threading.Thread(
            target=self._read, args=(stream or sys.stdin,), name="stdin", daemon=True
        )
        self._thread.start()

    def wait(self) -> None:
        """Until the input has ended."""
        self._thread.join()

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()

    def lines(self) -> list[str]:
        return [self._lines.get() for _ in range(self._lines.qsize())]

    def close(self) -> None:
        """The thread ends with its input."""

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            self._lines.put(line)


def _text(line: bytes) -> str:
    return line.decode("utf-8", errors="replace")


@dataclass(frozen=True, slots=True)
class Entry:
    """One log line. `at` is seconds since epoch."""

    at: float
    event: str
    level: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LoggedLatency:
    """Seconds, over `count` measurements."""

    count: int
    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class WindowReport:
    """The last `window_s` seconds, as the log tells them.

    `degraded` turns were answered without memory; it has been away for `memory_away_s` (None: it
    is there).
    """

    window_s: float
    events: Mapping[str, int] = field(default_factory=dict)
    decisions: Mapping[str, int] = field(default_factory=dict)
    turns: Mapping[str, int] = field(default_factory=dict)
    in_flight: int = 0
    latency: Mapping[str, LoggedLatency] = field(default_factory=dict)
    tokens_in: int = 0
    tokens_out: int = 0
    retries: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    warnings: Mapping[str, int] = field(default_factory=dict)
    skipped_lines: int = 0
    degraded: int = 0
    memory_away_s: float | None = None


@dataclass(frozen=True, slots=True)
class MonitorLimits:
    """What is too much; None: no limit. Times in seconds."""

    p95_s: float | None = None
    errors: int | None = None
    queue: int | None = None
    pending_age_s: float | None = None
    memory_away_s: float | None = None

    @property
    def need_tables(self) -> bool:
        """Whether the log alone cannot tell."""
        return self.queue is not None or self.pending_age_s is not None


@dataclass(frozen=True, slots=True)
class LoggedBacklog:
    """What waits, as the tables tell it: jobs, and the age (s) of the oldest unfinished work.

    `unstored_s` (s): for how long turns have waited for a memory that is away.
    """

    waiting: int
    oldest_s: float | None
    unstored_s: float | None = None


def parse(line: str) -> Entry | None:
    """The entry of a log line, None for anything that is not one."""
    try:
        fields = json.loads(line)
        at = datetime.fromisoformat(fields["timestamp"]).timestamp()
        return Entry(at, str(fields["event"]), str(fields.get("level", "info")), fields)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


class Window:
    """The entries of the last `seconds`, and what is in flight."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._entries: deque[Entry] = deque()
        self._in_flight: dict[str, float] = {}
        self._away: tuple[float, float] | None = None  # since when, and when it was last said
        self._skipped = 0

    def add(self, line: str) -> None:
        """Takes one line, in the order of the log."""
        entry = parse(line)
        if entry is None:
            self._skipped += bool(line.strip())
            return
        self._entries.append(entry)
        self._track(entry)

    def report(self, now: float) -> WindowReport:
        """The window that ends at `now` (seconds since epoch)."""
        self._forget_before(now - self._seconds)
        lost = [turn for turn, at in self._in_flight.items() if at < now - _LOST_AFTER_S]
        for turn in lost:
            del self._in_flight[turn]
        # Several files are not in order among themselves, so the oldest need not stand first.
        entries = [entry for entry in self._entries if entry.at >= now - self._seconds]
        found = _report(entries, self._seconds, len(self._in_flight), self._skipped)
        return replace(found, memory_away_s=self._memory_away_s(now))

    def _memory_away_s(self, now: float) -> float | None:
        if self._away is None or self._away[1] < now - _AWAY_UNTOLD_S:
            return None
        return now - self._away[0]

    def _forget_before(self, at: float) -> None:
        while self._entries and self._entries[0].at < at:
            self._entries.popleft()

    def _track(self, entry: Entry) -> None:
        if entry.event == "decision" and entry.fields.get("respond"):
            self._in_flight[str(entry.fields.get("message_id"))] = entry.at
        elif entry.event == "turn":
            self._in_flight.pop(str(entry.fields.get("turn_id")), None)
        elif entry.event in ("memory.away", "memory.still_away"):
            since = entry.at - _number(entry.fields.get("away_s"))
            self._away = (min(since, self._away[0] if self._away else since), entry.at)
        elif entry.event == "memory.back":
            self._away = None


_DOCTOR, _QUEUE = "scripts/doctor", "scripts/queue list"


def alarms(
    report: WindowReport, backlog: LoggedBacklog | None, limits: MonitorLimits
) -> list[Sentence]:
    """Each limit that is exceeded: its name, a sentence and the next step."""
    found = []
    total = report.latency.get("total")
    if limits.p95_s is not None and total and total.p95 > limits.p95_s:
        took, most = f"{total.p95:.1f}", f"{limits.p95_s:g}"
        found.append(
            Sentence(
                f"p95: answers take {took} s, the limit is {most} s → {_DOCTOR}",
                f"95 分位：回答需要 {took} 秒，限值为 {most} 秒 → {_DOCTOR}",
            )
        )
    errors = sum(report.errors.values())
    if limits.errors is not None and errors > limits.errors:
        found.append(
            Sentence(
                f"errors: {errors} in the window, the limit is {limits.errors} → {_DOCTOR}",
                f"错误：时间窗口内有 {errors} 个，限值为 {limits.errors} → {_DOCTOR}",
            )
        )
    if backlog and limits.queue is not None and backlog.waiting > limits.queue:
        found.append(
            Sentence(
                f"queue: {backlog.waiting} waiting, the limit is {limits.queue} → {_QUEUE}",
                f"队列：{backlog.waiting} 项等待，限值为 {limits.queue} → {_QUEUE}",
            )
        )
    oldest = backlog.oldest_s if backlog else None
    if limits.pending_age_s is not None and oldest is not None and oldest > limits.pending_age_s:
        age, most = f"{oldest:.0f}", f"{limits.pending_age_s:g}"
        found.append(
            Sentence(
                f"pending age: the oldest work is {age} s old, the limit is {most} s → {_QUEUE}",
                f"等待时间：最早的任务已等待 {age} 秒，限值为 {most} 秒 → {_QUEUE}",
            )
        )
    return found + _memory_alarms(report, backlog, limits)


def _memory_alarms(
    report: WindowReport, backlog: LoggedBacklog | None, limits: MonitorLimits
) -> list[Sentence]:
    if limits.memory_away_s is None:
        return []
    away_s = max(report.memory_away_s or 0.0, (backlog and backlog.unstored_s) or 0.0)
    if away_s <= limits.memory_away_s:
        return []
    away, most = f"{away_s:.0f}", f"{limits.memory_away_s:g}"
    return [
        Sentence(
            f"memory: away, or not written to, for {away} s, the limit is {most} s → {_DOCTOR}",
            f"记忆：不可用或未写入已 {away} 秒，限值为 {most} 秒 → {_DOCTOR}",
        )
    ]


def percentile(values: Iterable[float], share: float) -> float:
    """The value that `share` of the values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _report(entries: list[Entry], window_s: float, in_flight: int, skipped: int) -> WindowReport:
    turns = [entry.fields for entry in entries if entry.event == "turn"]
    return WindowReport(
        window_s=window_s,
        events=_counts(outcome for outcome in map(_event_outcome, entries) if outcome),
        decisions=_counts(_decision(e.fields) for e in entries if e.event == "decision"),
        turns=_counts(str(turn.get("outcome")) for turn in turns),
        in_flight=in_flight,
        latency=_latencies(entries),
        tokens_in=sum(int(_number(turn.get("tokens_in"))) for turn in turns),
        tokens_out=sum(int(_number(turn.get("tokens_out"))) for turn in turns),
        retries=_retries(entries),
        errors=_counts(_kind(entry) for entry in entries if entry.level in _ERRORS),
        warnings=_counts(_kind(entry) for entry in entries if entry.level == "warning"),
        skipped_lines=skipped,
        degraded=sum(turn.get("degraded") is True for turn in turns),
    )


def _counts(names: Iterable[str]) -> dict[str, int]:
    return dict(Counter(names))


def _event_outcome(entry: Entry) -> str | None:
    """What became of a delivery to the webhook."""
    if not entry.event.startswith("webhook."):
        return None
    outcome = entry.event.removeprefix("webhook.")
    return "duplicate" if outcome == "accepted" and entry.fields.get("duplicate") else outcome


def _decision(fields: Mapping[str, Any]) -> str:
    return f"{'answer' if fields.get('respond') else 'silent'}: {fields.get('reason')}"


def _latencies(entries: list[Entry]) -> dict[str, LoggedLatency]:
    measured: dict[str, list[float]] = {}
    for entry in entries:
        for name, stage in _STAGES.items():
            if name in entry.fields:
                measured.setdefault(stage, []).append(_number(entry.fields[name]) / 1000)
        if entry.event == "turn" and entry.fields.get("outcome") == "answered":
            measured.setdefault("total", []).append(_number(entry.fields.get("seconds")))
    return {
        stage: LoggedLatency(len(values), percentile(values, 0.5), percentile(values, 0.95))
        for stage, values in measured.items()
    }


def _retries(entries: list[Entry]) -> int:
    """Calls of Feishu that were repeated, and attempts at turns after the first."""
    calls = sum(entry.event == "feishu.retry" for entry in entries)
    turns = (entry.fields for entry in entries if entry.event == "turn")
    return calls + sum(_number(turn.get("attempt")) > 1 for turn in turns)


def _kind(entry: Entry) -> str:
    """The event with what tells its causes apart; never a text that somebody wrote."""
    for name in ("code", "error", "reason"):
        value = entry.fields.get(name)
        if isinstance(value, int | str) and value and len(str(value)) <= 60:
            return f"{entry.event} {value}"
    return entry.event


def _number(value: object) -> float:
    """A finite number; 0 for anything else."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return 0.0
    return float(value) if abs(value) < _ABSURD else 0.0
