"""What operators do with the queue and the tables beside it, over a direct connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg import sql

from bot.queue.inbox import QueueUnavailable
from memory.migrations import SCHEMA

_SCHEMA = sql.Identifier(SCHEMA)
_DEPTH = sql.SQL("select {}.queue_depth()").format(_SCHEMA)
_FORGET = sql.SQL("select {}.forget_in_queue(%s, %s, %s)").format(_SCHEMA)
_EXPORT = sql.SQL("select table_name, content from {}.export_from_queue(%s)").format(_SCHEMA)
_ARRIVALS = sql.SQL("select {}.arrivals()").format(_SCHEMA)
_UNPROTECTED = sql.SQL("select {}.unprotected_tables()").format(_SCHEMA)


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """Jobs by state; the age (s) of the oldest that waits for a worker, None when none does.

    `spooled` turns wait for a memory that is away, `oldest_spooled_s` (s) is the age of the oldest
    of what waits for it; `refused` it does not take.
    """

    waiting: int
    running: int
    failed: int
    oldest_waiting_s: float | None
    spooled: int = 0
    refused: int = 0
    oldest_spooled_s: float | None = None


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Jobs and waiting turns that were deleted; `running` jobs are in a worker's hands."""

    jobs: int
    turns: int
    running: int


class QueueOperations:
    """The operators' side of the queue. All methods raise `QueueUnavailable`."""

    def __init__(self, database_url: str) -> None:
        self._database_url = database_url

    def depth(self) -> QueueDepth:
        with self._connection() as connection:
            return QueueDepth(**_value(connection.execute(_DEPTH)))

    def forget(
        self,
        *,
        open_id: str | None = None,
        conversation_id: str | None = None,
        message_id: str | None = None,
    ) -> Forgotten:
        """Deletes what is of this person, conversation and message, and not running.

        What is not given matches any; at least one is.
        """
        with self._connection() as connection:
            wanted = (open_id, conversation_id, message_id)
            return Forgotten(**_value(connection.execute(_FORGET, wanted)))

    def export(self, open_id: str) -> list[tuple[str, dict[str, Any]]]:
        """Table and row of what waits of a person."""
        with self._connection() as connection:
            return connection.execute(_EXPORT, [open_id]).fetchall()

    def arrivals(self) -> dict[str, datetime]:
        """When something of each kind has last arrived; see `bot.queue.arrivals`."""
        with self._connection() as connection:
            found = _value(connection.execute(_ARRIVALS))
        return {kind: datetime.fromisoformat(one["last_at"]) for kind, one in found.items()}

    def unprotected_tables(self) -> list[str]:
        """Tables of the queue's schema without row-level security."""
        with self._connection() as connection:
            return [name for (name,) in connection.execute(_UNPROTECTED)]

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection]:
        try:
            with psycopg.connect(self._database_url, connect_timeout=5) as connection:
                yield connection
        except psycopg.Error as exc:
            raise QueueUnavailable(f"{type(exc).__name__}: check DATABASE_URL") from exc


def _value(cursor: psycopg.Cursor[Any]) -> dict[str, Any]:
    row = cursor.fetchone()
    value: dict[str, Any] = row[0] if row else {}
    return value
