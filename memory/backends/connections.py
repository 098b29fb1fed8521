"""Pools connections for threads, and decides for every pool when to connect again.

A pool makes one attempt at a time, so a server that is away sees few of them, however many
callers wait. Through a pooler in transaction mode (Supavisor, PgBouncer), prepared statements,
LISTEN and session settings do not work; `has_sessions` finds out."""

from __future__ import annotations

import random
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import structlog
from psycopg.conninfo import conninfo_to_dict

from memory.deadlines import DeadlineConnection, NoAnswer

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
    "disk_full": ("no space left",),
    "silent": ("timeout", "timed out"),
}
_LOST_STATES = frozenset({"57P01", "57P02", "57P03"})  # stopped, crashed, not ready yet
_READ_ONLY = "25006"

_SUPABASE_POOLER = "6543"
_ALL_SESSIONS_TAKEN = "in session mode"  # Supavisor: EMAXCONNSESSION
_TEST_CONNECT_S = 3
_LOOKS = 8
_PID = "select pg_backend_pid()"
_session_by_url: dict[str, bool] = {}


class ThreadPool:
    """At most `size` connections, which `connect` makes."""

    def __init__(self, connect: Callable[[], DeadlineConnection], *, size: int) -> None:
        self._connect = connect
        self._size = size
        self._changed = threading.Condition()
        self._idle: list[DeadlineConnection] = []
        self._count = 0  # idle or in use
        self._waiting = 0
        self._connecting = self._closed = False
        self._shrinking: threading.Timer | None = None
        self._reconnecting = ReconnectTimer()

    def open(self) -> None:
        """Makes the first connection in the background; one attempt."""
        with self._changed:
            self._begin_connecting()

    @contextmanager
    def connection(self, until: float) -> Iterator[DeadlineConnection]:
        """A connection for the block. Raises `NoConnection` at `until` (monotonic seconds)."""
        connection = self.take(until)
        failure: BaseException | None = None
        try:
            yield connection
        except BaseException as exc:
            failure = exc
            raise
        finally:
            self.give_back(connection, failure)

    def take(self, until: float) -> DeadlineConnection:
        """A connection, which the caller gives back. Raises `NoConnection`."""
        with self._changed:
            self._waiting += 1
            try:
                while (connection := self._usable()) is None:
                    left_s = until - time.monotonic()
                    if left_s <= 0 or self._closed:
                        raise NoConnection("no connection was free in time")
                    self._begin_connecting()
                    self._changed.wait(left_s)
            finally:
                self._waiting -= 1
            return connection

    def take_idle(self) -> DeadlineConnection | None:
        """A connection that nobody uses, without waiting."""
        with self._changed:
            return self._usable()

    def give_back(
        self, connection: DeadlineConnection, failure: BaseException | None = None
    ) -> None:
        """Ends what `take` began; `failure` is what the last statement ended with."""
        now = time.monotonic()
        is_standby = leads_to_standby(failure)
        if is_standby:
            connection.pgconn.finish()
        idle = connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE
        with self._changed:
            if not idle:
                self._reconnecting.note_loss()
            while is_standby and self._idle:
                self._drop(self._idle.pop())
            if idle and not self._closed and now - connection.made < LIFETIME_S:
                connection.since = now
                self._idle.append(connection)
            else:
                self._drop(connection)
            self._shrink_later()
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            while self._idle:
                self._drop(self._idle.pop())
            if self._shrinking:
                self._shrinking.cancel()
            self._changed.notify_all()

    def _usable(self) -> DeadlineConnection | None:
        while self._idle:
            connection = self._idle.pop()
            if not _has_ended(connection):
                return connection
            self._reconnecting.note_loss()
            self._drop(connection)
        return None

    def _drop(self, connection: DeadlineConnection) -> None:
        self._count -= 1
        connection.close()

    # Connecting. `_changed` is held where nothing else is said.

    def _begin_connecting(self) -> None:
        if not self._connecting and self._count < self._size and not self._closed:
            self._connecting = True
            threading.Thread(target=self._keep_connecting, name="connecting", daemon=True).start()

    def _keep_connecting(self) -> None:
        """Connects until nobody waits or the pool is full. `_changed` is not held."""
        going_on = True
        while going_on:
            time.sleep(self._reconnecting.wait_s)
            is_connected = self._attempt()
            with self._changed:
                if is_connected:
                    self._count += 1
                    self._idle.append(is_connected)
                    self._changed.notify()
                missing = self._waiting > len(self._idle)
                going_on = missing and self._count < self._size and not self._closed
                self._connecting = going_on
                if self._closed:
                    while self._idle:
                        self._drop(self._idle.pop())

    def _attempt(self) -> DeadlineConnection | None:
        try:
            connection = self._connect()
        except (psycopg.Error, OSError) as exc:
            self._reconnecting.note_failure(exc)
            return None
        self._reconnecting.note_success()
        connection.made = connection.since = time.monotonic()
        return connection

    # Shrinking

    def _shrink_later(self) -> None:
        if self._shrinking is None and len(self._idle) > 1 and not self._closed:
            self._shrinking = threading.Timer(IDLE_S, self._shrink)
            self._shrinking.daemon = True
            self._shrinking.start()

    def _shrink(self) -> None:
        """Closes what nobody has used for long, but for one. `_changed` is not held."""
        with self._changed:
            self._shrinking = None
            while len(self._idle) > 1 and time.monotonic() - self._idle[0].since >= IDLE_S:
                self._drop(self._idle.pop(0))
            self._shrink_later()


def _has_ended(connection: DeadlineConnection) -> bool:
    """True if the server has hung up: what it said before that is readable, and then the end is."""
    looking = select.poll()
    try:
        looking.register(connection.fileno(), select.POLLIN)
        for _ in range(2):
            if looking.poll(0):
                connection.pgconn.consume_input()
    except psycopg.Error:
        return True
    return connection.closed


class NoConnection(psycopg.OperationalError):
    """No connection was free or could be made in time."""


def leads_to_standby(exc: BaseException | None) -> bool:
    """True if the server takes no writes any more. After a failover connections to the server that
    was the primary stay open, and only new ones lead to the one that is."""
    return isinstance(exc, psycopg.Error) and exc.sqlstate == _READ_ONLY


def is_lost(exc: BaseException) -> bool:
    """True if the connection failed, and not the statement."""
    if leads_to_standby(exc):
        return True
    if not isinstance(exc, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    code = exc.sqlstate or ""
    return not code or code in _LOST_STATES or code.startswith("08")


def failure_kind(exc: BaseException) -> str:
    """Names why no connection could be made, for the log."""
    message = str(exc).lower()
    if isinstance(exc, TimeoutError):
        return "silent"
    matching_kinds = (
        kind for kind, signs in _KINDS.items() if any(sign in message for sign in signs)
    )
    return next(matching_kinds, type(exc).__name__)


def reconnect_pause_s(exc: BaseException) -> float:
    """Seconds to wait before the next attempt to connect, after one failed with `exc`."""
    return _REFUSED_PAUSE_S if failure_kind(exc) == "login_refused" else random.uniform(*_PAUSE_S)  # noqa: S311


class ReconnectTimer:
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

    def note_loss(self) -> None:
        """A connection broke."""
        self.lost_at = self._clock()

    def note_failure(self, exc: BaseException) -> None:
        """An attempt failed."""
        self.note_loss()
        self._next_attempt = self._clock() + reconnect_pause_s(exc)
        if self._away_since is None:
            self._away_since = self._clock()
            log.warning("database.away", error=failure_kind(exc))

    def note_success(self) -> None:
        """An attempt succeeded."""
        self._next_attempt = 0.0
        away_since, self._away_since = self._away_since, None
        if away_since is not None:
            log.warning("database.back", away_s=round(self._clock() - away_since, 1))


def has_sessions(database_url: str) -> bool:
    """True if a connection is one session. The database is asked once in a process; if it does not
    answer, True, and it is asked again the next time."""
    if database_url not in _session_by_url:
        try:
            if conninfo_to_dict(database_url).get("port") == _SUPABASE_POOLER:
                return False
            _session_by_url[database_url] = _keeps_its_session(database_url)
        except psycopg.Error:
            return True
    return _session_by_url[database_url]


def prepare_threshold(database_url: str) -> int | None:
    """After how many executions a statement is prepared; None where none can be."""
    return 5 if has_sessions(database_url) else None


def _keeps_its_session(url: str) -> bool:
    """A pooler answers with a process id of its own at the start. In transaction mode it then gives
    the session that was used last to whoever asks next, and while others ask, any session; in
    statement mode it refuses transactions. Where our one session is all there is, the second waits
    or is refused for that.
    Raises `psycopg.Error` if nobody answers."""
    with _test_connection(url) as first:
        before = _backend_pid(first)
        if before == first.info.backend_pid:
            return True
        try:
            with _test_connection(url) as second, second.transaction():
                is_shared = _backend_pid(second) == before
                return not is_shared and all(_backend_pid(first) == before for _ in range(_LOOKS))
        except NoAnswer:
            return _backend_pid(first) == before
        except psycopg.Error as exc:
            return _ALL_SESSIONS_TAKEN in str(exc).lower()


def _test_connection(url: str) -> psycopg.Connection:
    connection = DeadlineConnection.connect(
        url, autocommit=True, prepare_threshold=None, connect_timeout=_TEST_CONNECT_S
    )
    connection.until = time.monotonic() + _TEST_CONNECT_S
    return connection


def _backend_pid(connection: psycopg.Connection) -> int:
    row = connection.execute(_PID).fetchone()
    return int(row[0]) if row else 0
