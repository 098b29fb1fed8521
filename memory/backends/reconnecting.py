"""How a pool reconnects to Postgres: at once, then a few times a second while somebody waits.

A pool makes one attempt at a time, so a server that is away or hangs sees few of them, however many
callers wait. The log gets one line when the server stops taking connections and one when it takes
them again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import psycopg
import structlog

log = structlog.get_logger()

CONNECT_S = 3.0
IDLE_S = 120.0  # then a connection that is not the last one is closed
LIFETIME_S = 3600.0
_PAUSE_S = (0.1, 0.25)
_REFUSED_PAUSE_S = 5.0  # a wrong password does not get better, and hosts ban who repeats it
# libpq gives a failed connection no code. These are pieces of its messages, which may quote the
# URL; only the kind is logged.
_KINDS = {
    "login_refused": ("password", "authentication", "pg_hba", 'role "', "user not found"),
    "too_many_clients": ("too many", "connection slots", "max clients"),
    "starting": ("starting up", "recovery", "not yet accepting"),
    "stopping": ("shutting down",),
    "refused": ("refused", "no such file", "closed the connection", "reset by peer"),
    "silent": ("timeout", "timed out"),
}
_LOST_STATES = frozenset({"57P01", "57P02", "57P03"})  # stopped, crashed, not ready yet


class NoConnection(psycopg.OperationalError):
    """No connection was free or could be made in time."""


def is_lost(exc: BaseException) -> bool:
    """True if the connection failed, and not the statement."""
    if not isinstance(exc, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    code = exc.sqlstate or ""
    return not code or code in _LOST_STATES or code.startswith("08")


def kind_of(exc: BaseException) -> str:
    """Names why no connection could be made, for the log."""
    message = str(exc).lower()
    if isinstance(exc, TimeoutError):
        return "silent"
    matching_kinds = (
        kind for kind, signs in _KINDS.items() if any(sign in message for sign in signs)
    )
    return next(matching_kinds, type(exc).__name__)


def pause_after(exc: BaseException) -> float:
    """Seconds to wait before the next attempt to connect, after one failed with `exc`."""
    return _REFUSED_PAUSE_S if kind_of(exc) == "login_refused" else random.uniform(*_PAUSE_S)  # noqa: S311


class Reconnecting:
    """When a pool may try to connect again. `clock` is monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next_attempt = 0.0
        self._away_since: float | None = None
        self.lost_at = float("-inf")
        """When a connection last broke or could not be made, in seconds of the clock."""

    @property
    def wait_s(self) -> float:
        """Seconds until the next attempt may be made."""
        return max(0.0, self._next_attempt - self._clock())

    def lost(self) -> None:
        """A connection broke."""
        self.lost_at = self._clock()

    def failed(self, exc: BaseException) -> None:
        """An attempt failed."""
        self.lost()
        self._next_attempt = self._clock() + pause_after(exc)
        if self._away_since is None:
            self._away_since = self._clock()
            log.warning("database.away", error=kind_of(exc))

    def succeeded(self) -> None:
        """An attempt succeeded."""
        self._next_attempt = 0.0
        since, self._away_since = self._away_since, None
        if since is not None:
            log.warning("database.back", away_s=round(self._clock() - since, 1))
