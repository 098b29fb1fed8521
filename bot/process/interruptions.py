"""What keeps a worker from working: said once each time it changes, with growing pauses.

Only a database that is away is looked for all the time: work goes on as soon as it is back.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator

import psycopg
import structlog

from memory.backends.reconnecting import is_lost, kind_of, pause_after
from memory.errors import NotMigrated, StoreError, from_sqlstate

log = structlog.get_logger()

_FIRST_S = 1.0
_LONGEST_S = 30.0


class Interruptions:
    """What happened without a longer time of work in between. `clock` is monotonic seconds."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said = ""
        self._pause_s = _FIRST_S
        self._working_since: float | None = None

    def works(self) -> None:
        """From now on the worker works."""
        self._said = ""
        self._working_since = self._clock()

    def happened(self, exc: Exception) -> float:
        """Says what happened unless it was just said; how long (s) to wait before going on."""
        since, self._working_since = self._working_since, None
        if since is not None and self._clock() - since > _LONGEST_S:
            self._pause_s = _FIRST_S
        event, fields = _described(exc)
        if event != self._said:
            log.error(event, **fields)
        self._said = event
        lost_connection = next(filter(is_lost, _chain(exc)), None)
        if event == "database.away" and lost_connection:
            return pause_after(lost_connection)
        pause_s, self._pause_s = self._pause_s, min(self._pause_s * 2, _LONGEST_S)
        return pause_s


def _described(exc: Exception) -> tuple[str, dict[str, object]]:
    """The event and its fields; of what was not foreseen the frames, for its message may hold
    people's words."""
    for one in _chain(exc):
        store = _of_postgres(one) if isinstance(one, psycopg.Error) else one
        if isinstance(store, NotMigrated):
            return "database.not_migrated", {"reason": str(store)}
        if isinstance(one, psycopg.OperationalError):
            return "database.away", {"error": kind_of(one)}
    stack = [frame for one in _chain(exc) for frame in traceback.format_tb(one.__traceback__)]
    return "worker.interrupted", {"error": type(exc).__name__, "stack": "".join(stack)}


def _of_postgres(exc: psycopg.Error) -> StoreError:
    return from_sqlstate(exc.sqlstate or "", exc.diag.message_primary or type(exc).__name__)


def _chain(exc: BaseException | None) -> Iterator[BaseException]:
    """`exc`, what it consists of, and what it came from."""
    if exc is None:
        return
    yield exc
    for part in exc.exceptions if isinstance(exc, BaseExceptionGroup) else ():
        yield from _chain(part)
    yield from _chain(exc.__cause__)
