"""Counts and times what the bot does, and watches its event loops for what blocks them.

The numbers are for Prometheus and the log lines of turns, of one process unless
PROMETHEUS_MULTIPROC_DIR is set. A thread looks ten times a second whether the loop is late. A
pattern of `re` holds the interpreter until it ends, so the thread sees the stack right after
that."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Self

import prometheus_client
from prometheus_client import (
    CollectorRegistry,
    Gauge,
    generate_latest,
    multiprocess,
    start_http_server,
)

from bot.process.log_lines import write_event

_FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 3)
_SLOW = (0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 45, 60)
IN_FLIGHT = Gauge("bot_turns_in_flight", "Turns being worked on.", multiprocess_mode="livesum")
MODEL_REQUESTS = Gauge(
    "bot_model_requests", "Requests that models are answering.", multiprocess_mode="livesum"
)
MODEL_WAITING = Gauge(
    "bot_model_requests_waiting",
    "Requests that wait because a model has as many as it takes.",
    multiprocess_mode="livesum",
)
FEISHU_MONTH_CALLS = Gauge(
    "bot_feishu_month_calls",
    "Calls of this month that count against FEISHU_CALLS_PER_MONTH, as last heard.",
    multiprocess_mode="livemax",
)
MEMORY_BREAKER = Gauge(
    "bot_memory_breaker", "0: memory there, 1: being probed, 2: away.", multiprocess_mode="livemax"
)
UNSTORED = Gauge(
    "bot_unstored_turns", "Turns that wait for the memory.", multiprocess_mode="livemax"
)
UNSTORED_OLDEST_SECONDS = Gauge(
    "bot_unstored_oldest_seconds",
    "Age of what has waited longest for the memory.",
    multiprocess_mode="livemax",
)
EMBEDDING_AWAY = Gauge(
    "bot_embedding_away",
    "1: the embedding model is slow or away, and questions do not wait for it.",
    multiprocess_mode="livemax",
)

_stage_seconds: ContextVar[dict[str, float] | None] = ContextVar("spent", default=None)
_record_fields: ContextVar[dict[str, object] | None] = ContextVar("kept", default=None)
_log_fields: ContextVar[dict[str, object] | None] = ContextVar("noted", default=None)

LOOP_BLOCKED_S = 0.5
_BEAT_S = 0.1
_LINE_EVERY_S = 10.0
_ROOT = Path(__file__).resolve().parents[2]
_FRAMES = 4
_MOST_BLOCKS = 50
_DAY_S = 24 * 3600


class _Remembering:
    """A metric that remembers its children by labels; asking for one costs five times as much."""

    _values: dict[tuple[Any, ...], Any]

    def labels(self, *values: Any, **labels: Any) -> Self:
        key = (*values, *labels.items())
        try:
            return self._values[key]  # type: ignore[no-any-return]
        except AttributeError:
            self._values = {}
        except KeyError:
            pass
        child = self._values[key] = super().labels(*values, **labels)  # type: ignore[misc]
        return child  # type: ignore[no-any-return]


class Counter(_Remembering, prometheus_client.Counter):
    """Of the client library."""


class Histogram(_Remembering, prometheus_client.Histogram):
    """Of the client library."""


EVENTS = Counter("bot_events_total", "Deliveries to the webhook.", ["outcome"])
REFUSED = Counter("bot_refused_requests_total", "Requests that were refused.", ["reason"])
LOOP_BLOCKED = Histogram(
    "bot_loop_blocked_seconds",
    "How long an event loop was blocked, each time it was for over half a second.",
    buckets=(0.5, 1, 2, 5, 10, 30),
)
ACK_SECONDS = Histogram("bot_ack_seconds", "Delivery to acknowledgement.", buckets=_FAST)
DECISIONS = Counter("bot_decisions_total", "Answer or stay silent, and why.", ["respond", "reason"])
CONVERSATION_MESSAGES = Histogram(
    "bot_conversation_messages",
    "Messages in the group's conversation when the bot answers in it.",
    buckets=(1, 2, 5, 10, 20, 50, 100, 200),
)
CONVERSATION_PEOPLE = Histogram(
    "bot_conversation_people",
    "People in the group's conversation when the bot answers in it.",
    buckets=(1, 2, 3, 5, 8, 13, 21),
)
TOPICS = Counter("bot_topics_total", "Questions in main chats: is their topic sure?", ["topic"])
SUBJECTS = Counter("bot_subjects_total", "Answers in groups: about the sender?", ["about"])
TURNS = Counter("bot_turns_total", "Turns by how they ended.", ["outcome"])
TURN_SECONDS = Histogram("bot_turn_seconds", "Acknowledgement to delivered reply.", buckets=_SLOW)
STAGE_SECONDS = Histogram(
    "bot_stage_seconds",
    "Time spent in one stage of a turn.",
    ["stage"],
    buckets=_FAST[:-1] + _SLOW[3:],
)
STOPPED = Counter("bot_turns_stopped_total", "Answers that somebody stopped.")
FEEDBACK = Counter(
    "bot_feedback_total",
    "What people said of answers: helpful or unhelpful, by button or reaction, kept or taken back.",
    ["said", "by", "kept"],
)
TOKENS = Counter(
    "bot_model_tokens_total",
    "Tokens as the model reports them: of answers, judge, summaries and embeddings.",
    ["direction", "kind"],
)
MODEL_FAILURES = Counter("bot_model_failures_total", "Model calls that gave no answer.", ["reason"])
FEISHU_CALLS = Counter("bot_feishu_calls_total", "Calls that Feishu counts, by API.", ["api"])
FEISHU_ERRORS = Counter("bot_feishu_errors_total", "Errors of the Feishu API.", ["code"])
MEMORY_ERRORS = Counter("bot_memory_errors_total", "Errors of the memory.", ["error"])
MEMORY_FAILURES = Counter(
    "bot_memory_failures_total", "Calls that the memory did not answer.", ["kind"]
)
TURNS_UNSTORED = Counter("bot_turns_unstored_total", "Turns kept while the memory was away.")
TURNS_STORED_LATER = Counter(
    "bot_turns_stored_later_total", "Turns written when the memory was back."
)
SUMMARIES = Counter("bot_summaries_total", "Folds of long threads, by who wrote them.", ["by"])
TENDING = Counter("bot_tending_total", "Background jobs of conversations.", ["outcome"])
MEMBERS_REFRESHED = Counter(
    "bot_members_refresh_total",
    "Chats that Feishu was asked about, by what came of it.",
    ["outcome"],
)
IMPORTED_MESSAGES = Counter(
    "bot_imported_messages_total", "Messages of a chat's past that were read and kept."
)
TIMERS = Counter("bot_timers_total", "Times of timers, by what came of them.", ["kind", "outcome"])
TIMER_LATE_SECONDS = Histogram(
    "bot_timer_late_seconds",
    "From the time of a timer to its card.",
    buckets=(1, 2, 5, 10, 30, 60, 300, 3600, 86400),
)
PRIVATE = Counter("bot_private_look_ups_total", "Look-ups for who asked in a group.", ["outcome"])
EMBEDDING_SECONDS = Histogram(
    "bot_embedding_seconds",
    "Calls of the embedding model, for a question or for messages.",
    ["of"],
    buckets=(*_FAST[3:], 10, 30),
)
EMBEDDING_FAILURES = Counter(
    "bot_embedding_failures_total", "Calls of the embedding model without vectors.", ["reason"]
)
STALLED = Counter("bot_stalled_jobs_total", "Jobs taken over from a worker that died.")
GIVEN_UP = Counter("bot_given_up_jobs_total", "Jobs that get no other attempt.", ["reason"])
UNKNOWN_OUTCOMES = Counter(
    "bot_unknown_outcomes_total", "Cards not sent again because nobody can see whether they were."
)


def count_tokens(kind: str, tokens_in: int, tokens_out: int) -> None:
    """Tokens of one answer, or of a request of another kind."""
    TOKENS.labels(direction="in", kind=kind).inc(tokens_in)
    TOKENS.labels(direction="out", kind=kind).inc(tokens_out)


def count_from_zero() -> None:
    """An alert on `increase` does not see the first of a series that was not there before."""
    for outcome in ("apologised", "undelivered"):
        TURNS.labels(outcome=outcome)


def count_feedback(by: str, *, helpful: bool, is_kept: bool) -> None:
    """One press or reaction that said whether an answer helped."""
    rating = "helpful" if helpful else "unhelpful"
    FEEDBACK.labels(said=rating, by=by, kept="yes" if is_kept else "no").inc()


def render_metrics() -> bytes:
    """The text exposition of this process, or of all of them."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return generate_latest()
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)


def serve_metrics(port: int) -> None:
    """Serves the metrics of a process without a web server on loopback; 0 does nothing."""
    if port:
        start_http_server(port, addr="127.0.0.1")


def begin_turn_timing() -> None:
    """Starts counting for the task that runs now."""
    _stage_seconds.set({})
    _log_fields.set({})
    _record_fields.set({})


def note_for_log(**fields: object) -> None:
    """Keeps fields for the turn's log line: numbers and names, no message text."""
    notes = _log_fields.get()
    if notes is not None:
        notes.update(fields)


def keep_for_record(**ids: object) -> None:
    """Keeps for the record of the turn what it is made of: ids and counts, no words."""
    kept_values = _record_fields.get()
    if kept_values is not None:
        kept_values.update(ids)


def kept_for_record() -> dict[str, object]:
    """What was kept since `begin`."""
    return dict(_record_fields.get() or {})


class timed_stage:  # noqa: N801  read as what it does, like `contextlib.suppress`
    """Counts the time of the block as part of `name`, failures included."""

    __slots__ = ("_began", "_name")

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        seconds = time.perf_counter() - self._began
        STAGE_SECONDS.labels(stage=self._name).observe(seconds)
        if (seconds_by_stage := _stage_seconds.get()) is not None:
            seconds_by_stage[self._name] = seconds_by_stage.get(self._name, 0.0) + seconds


def turn_log_fields() -> dict[str, object]:
    """`{stage}_ms` of every stage since `begin`, and what was noted."""
    seconds_by_stage = {
        f"{name}_ms": round(s * 1000, 1) for name, s in (_stage_seconds.get() or {}).items()
    }
    return {**seconds_by_stage, **(_log_fields.get() or {})}


@dataclass(frozen=True, slots=True)
class LoopBlock:
    """The loop was late by `seconds`; its thread computed for `cpu_s` of them.

    `at` is seconds since epoch.
    """

    at: float
    seconds: float
    cpu_s: float
    where: str

    @property
    def is_ours(self) -> bool:
        """False if the loop waited most of the time, for the processor or for another thread."""
        return self.cpu_s >= self.seconds / 2


class LoopWatch:
    """One loop. `folder` is where the doctor looks; `clock` is monotonic seconds."""

    def __init__(
        self,
        folder: Path | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        write: Callable[..., None] = write_event,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._write = write
        self._busy_since: float | None = None
        self._cpu_s = 0.0
        self._where = ""
        self._recent_blocks: deque[LoopBlock] = deque(maxlen=_MOST_BLOCKS)
        self._unsaid: list[LoopBlock] = []
        self._said_at = -_LINE_EVERY_S
        self._noted_blocks: deque[LoopBlock] = deque(maxlen=_MOST_BLOCKS)
        self._thread = 0

    # In the loop's thread

    def begin(self) -> None:
        """Watches the thread that calls this."""
        self._thread = threading.get_ident()
        threading.Thread(target=self._keep_looking, name="loop watch", daemon=True).start()

    def follow(self, loop: asyncio.AbstractEventLoop) -> None:
        """Watches an asyncio loop by a timer of its own; call this in its thread."""
        self.begin()
        self._beat(loop)

    def busy(self, started_at: float | None = None) -> None:
        """The loop works from now on, or from `started_at` unless it calls `back` before."""
        self._cpu_s = time.thread_time()
        self._busy_since = self._clock() if started_at is None else started_at

    def back(self) -> None:
        """The loop has got through what it had to do."""
        busy_since, self._busy_since = self._busy_since, None
        where, self._where = self._where, ""
        if busy_since is not None and (seconds := self._clock() - busy_since) > LOOP_BLOCKED_S:
            cpu_s = time.thread_time() - self._cpu_s
            block = LoopBlock(round(time.time()), round(seconds, 2), round(cpu_s, 2), where)
            self._recent_blocks.append(block)

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        self.back()
        self.busy(self._clock() + _BEAT_S)
        loop.call_later(_BEAT_S, self._beat, loop)

    # In the watching thread

    def _keep_looking(self) -> None:
        while True:
            time.sleep(_BEAT_S)
            self.look(sys._current_frames().get(self._thread))
            self.report()

    def look(self, frame: FrameType | None) -> None:
        """Notes where the loop is if it is late; for a longer block, where it was last."""
        busy_since = self._busy_since
        if busy_since is not None and self._clock() - busy_since > LOOP_BLOCKED_S / 2:
            self._where = code_place(frame) or self._where

    def report(self) -> None:
        """Counts what has ended, and says the longest of it: at most one line in ten seconds."""
        while self._recent_blocks:
            block = self._recent_blocks.popleft()
            LOOP_BLOCKED.observe(block.seconds)
            self._unsaid.append(block)
        if not self._unsaid or self._clock() - self._said_at < _LINE_EVERY_S:
            return
        self._said_at = self._clock()
        longest = max(self._unsaid, key=lambda one: one.seconds)
        fields = asdict(longest)
        fields.pop("at")
        self._write("loop.blocked", level="warning", **fields, blocks=len(self._unsaid))
        self._unsaid = []
        self._noted_blocks.append(longest)
        self._note()

    def _note(self) -> None:
        if self._folder is None:
            return
        text = "\n".join(json.dumps(asdict(one)) for one in self._noted_blocks)
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            name = f"blocked-{threading.get_native_id()}"
            (self._folder / name).write_text(text, encoding="utf-8")


def code_place(frame: FrameType | None) -> str:
    """The innermost functions of our code on the stack, as `module.function < caller`."""
    frames: list[str] = []
    while frame is not None and len(frames) < _FRAMES:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(_ROOT) and ".venv" not in path.parts:
            module = path.relative_to(_ROOT).with_suffix("").as_posix().replace("/", ".")
            frames.append(f"{module}.{frame.f_code.co_name}")
        frame = frame.f_back
    return " < ".join(frames)


def blocks_of_today(folder: Path, now_s: float) -> list[LoopBlock]:
    """What the loops of this machine noted within a day. Older notes are removed."""
    return [one for file in folder.glob("blocked-*") for one in _read_blocks(file, now_s)]


def _read_blocks(file: Path, now_s: float) -> Iterable[LoopBlock]:
    try:
        if now_s - file.stat().st_mtime > _DAY_S:
            file.unlink(missing_ok=True)
            return []
        blocks = [LoopBlock(**json.loads(line)) for line in file.read_text("utf-8").splitlines()]
    except (OSError, ValueError, TypeError):
        return []
    return [one for one in blocks if now_s - one.at <= _DAY_S]
