"""Logs what keeps a worker from working, and counts the outages of the memory.

Each failure is logged once when it changes, with growing pauses; only a database that is away
is looked for all the time."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator

import psycopg
import structlog

from bot.process import metrics
from memory.backends.connections import failure_kind, is_lost, reconnect_pause_s
from memory.errors import NotMigrated, StoreError, from_sqlstate
from memory.fallback.breaker import BreakerState, MemoryWatch

log = structlog.get_logger()
_FIRST_S = 1.0
_LONGEST_S = 30.0

_BREAKER_NUMBERS = {"closed": 0, "half_open": 1, "open": 2}


class Interruptions:
    """What happened without a longer time of work in between. `clock` is monotonic seconds."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_event = ""
        self._pause_s = _FIRST_S
        self._working_since: float | None = None

    def works(self) -> None:
        """From now on the worker works."""
        self._last_event = ""
        self._working_since = self._clock()

    def note_failure(self, exc: Exception) -> float:
        """Says what happened unless it was just said; how long (s) to wait before going on."""
        working_since, self._working_since = self._working_since, None
        if working_since is not None and self._clock() - working_since > _LONGEST_S:
            self._pause_s = _FIRST_S
        event, fields = _event_of_failure(exc)
        if event != self._last_event:
            log.error(event, **fields)
        self._last_event = event
        lost_connection = next(filter(is_lost, _exception_chain(exc)), None)
        if event == "database.away" and lost_connection:
            return reconnect_pause_s(lost_connection)
        pause_s, self._pause_s = self._pause_s, min(self._pause_s * 2, _LONGEST_S)
        return pause_s


def _event_of_failure(exc: Exception) -> tuple[str, dict[str, object]]:
    """The event and its fields; of what was not foreseen the frames, for its message may hold
    people's words."""
    for one in _exception_chain(exc):
        store = _store_error(one) if isinstance(one, psycopg.Error) else one
        if isinstance(store, NotMigrated):
            return "database.not_migrated", {"reason": str(store)}
        if isinstance(one, psycopg.OperationalError) or is_lost(one):
            return "database.away", {"error": failure_kind(one)}
    stack = [
        frame for one in _exception_chain(exc) for frame in traceback.format_tb(one.__traceback__)
    ]
    return "worker.interrupted", {"error": type(exc).__name__, "stack": "".join(stack)}


def _store_error(exc: psycopg.Error) -> StoreError:
    return from_sqlstate(exc.sqlstate or "", exc.diag.message_primary or type(exc).__name__)


def _exception_chain(exc: BaseException | None) -> Iterator[BaseException]:
    """`exc`, what it consists of, and what it came from."""
    if exc is None:
        return
    yield exc
    for part in exc.exceptions if isinstance(exc, BaseExceptionGroup) else ():
        yield from _exception_chain(part)
    yield from _exception_chain(exc.__cause__)


class MemoryMetrics(MemoryWatch):
    """Counts into `bot.process.metrics`."""

    def state(self, state: BreakerState) -> None:
        metrics.MEMORY_BREAKER.set(_BREAKER_NUMBERS[state])

    def count_failure(self, kind: str) -> None:
        metrics.MEMORY_FAILURES.labels(kind=kind).inc()

    def count_kept_turn(self) -> None:
        metrics.TURNS_UNSTORED.inc()

    def count_written_turn(self) -> None:
        metrics.TURNS_STORED_LATER.inc()

    def waiting(self, turns: int, oldest_s: float) -> None:
        metrics.UNSTORED.set(turns)
        metrics.UNSTORED_OLDEST_SECONDS.set(oldest_s)
