"""Finds out whether a connection to the database is one session.

Through a pooler in transaction mode (Supavisor, PgBouncer) each transaction may run in another
session. There, prepared statements, LISTEN and settings of a session do not work.
"""

from __future__ import annotations

import psycopg

_SUPABASE_POOLER = ":6543"
_CONNECT_S = 3
_PID = "select pg_backend_pid()"

_known: dict[str, bool] = {}


def has_sessions(database_url: str) -> bool:
    """True if a connection is one session. The database is asked once in a process; if it does not
    answer, True."""
    if _SUPABASE_POOLER in database_url:
        return False
    if database_url not in _known:
        try:
            _known[database_url] = _keeps_its_session(database_url)
        except psycopg.Error:
            return True
    return _known[database_url]


def prepare_threshold(database_url: str) -> int | None:
    """After how many executions a statement is prepared; None where none can be."""
    return 5 if has_sessions(database_url) else None


def _keeps_its_session(url: str) -> bool:
    """A pooler answers with a process id of its own at the start. In transaction mode it then gives
    the session that was used last to whoever asks next."""
    with _connected(url) as first:
        before = _pid(first)
        if before == first.info.backend_pid:
            return True
        with _connected(url) as second, second.transaction():
            _pid(second)
            return _pid(first) == before


def _connected(url: str) -> psycopg.Connection:
    return psycopg.connect(url, autocommit=True, prepare_threshold=None, connect_timeout=_CONNECT_S)


def _pid(connection: psycopg.Connection) -> int:
    row = connection.execute(_PID).fetchone()
    return int(row[0]) if row else 0
