"""What operators do with the queue and the tables beside it, over a direct connection."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import psycopg
from psycopg import sql

from bot.queue.looking import looking
from memory.migrations import SCHEMA

_ALL_OF_IT_S = 60.0  # everything of a person

_SCHEMA = sql.Identifier(SCHEMA)
_DEPTH = sql.SQL("select {}.queue_depth()").format(_SCHEMA)
_FORGET = sql.SQL("select {}.forget_in_queue(%s, %s, %s)").format(_SCHEMA)
_FORGET_ROWS = sql.SQL("select {}.forget_rows_of(%s)").format(_SCHEMA)
_EXPORT = sql.SQL("select table_name, content from {}.export_from_queue(%s)").format(_SCHEMA)
_ARRIVALS = sql.SQL("select {}.arrivals()").format(_SCHEMA)
_LIST_FAILED = sql.SQL("select {}.failed_work(%s, %s, %s)").format(_SCHEMA)
_EVENTS = sql.SQL("select {}.job_events(%s)").format(_SCHEMA)
_RETRY = sql.SQL("select {}.retry_failed(%s, %s, %s)").format(_SCHEMA)
_DROP = sql.SQL("select {}.drop_failed(%s, %s)").format(_SCHEMA)
_LIST_UNFINISHED = sql.SQL("select {}.unfinished_work(%s)").format(_SCHEMA)
_CANCEL = sql.SQL("select {}.cancel_waiting(%s)").format(_SCHEMA)
# A message's id, or the key of a turn that came from something else.
_TURN = re.compile(r"om_\w{1,64}|[0-9a-f]{32}")
_LIST_UNPROTECTED = sql.SQL("select {}.unprotected_tables()").format(_SCHEMA)


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """Jobs by state; the age (s) of the oldest that waits for a worker, None when none does.

    `unstored` turns wait for a memory that is away; `oldest_unstored_s` (s) is the age of the
    oldest of anything that waits for it.
    """

    waiting: int
    running: int
    failed: int
    oldest_waiting_s: float | None
    unstored: int = 0
    oldest_unstored_s: float | None = None


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Jobs and waiting turns that were deleted; `running` jobs are in a worker's hands."""

    jobs: int
    turns: int
    running: int


@dataclass(frozen=True, slots=True)
class Reference:
    """What was given up: `J` a job, `A` an answer that Feishu did not take, by its turn, or all
    that was given up of a message."""

    kind: str
    id: str

    @classmethod
    def parse(cls, text: str) -> Reference:
        """From `J12` or `om_…`. Raises `ValueError`."""
        text = text.strip()
        if match := re.fullmatch(r"(J)(\d{1,18})", text.upper()):
            return cls(match[1], match[2])
        if _TURN.fullmatch(text):
            return cls("A", text)
        raise ValueError(f"{text!r} is no reference: it is J12 or om_…, as listed")

    def __str__(self) -> str:
        return self.id if self.kind == "A" else f"{self.kind}{self.id}"


@dataclass(frozen=True, slots=True)
class Failed:
    """What was given up, without what people wrote. Times are ISO 8601.

    `what` is the task; `excused`: who asked was told so.
    """

    kind: str
    id: str
    what: str
    reason: str | None
    attempts: int
    conversation_id: str | None
    message_id: str | None
    person: str | None
    asked_at: str | None
    failed_at: str | None
    excused: bool

    @property
    def reference(self) -> Reference:
        return Reference(self.kind, self.id)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A job that waits, or that a worker has in hand, without what people wrote. Times are ISO
    8601; `scheduled_at`: not before then; `reason`: why its last attempt failed."""

    id: int
    what: str
    running: bool
    attempts: int
    conversation_id: str | None
    scheduled_at: str | None
    message_id: str | None
    person: str | None
    since: str | None
    reason: str | None = None

    @property
    def reference(self) -> Reference:
        return Reference("J", str(self.id))


class QueueOperations:
    """The operators' side of the queue. All methods raise `DatabaseTrouble`."""

    def __init__(self, database_url: str) -> None:
        self._connection = partial(looking, database_url)

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
        with self._connection(_ALL_OF_IT_S) as connection:
            keys = (open_id, conversation_id, message_id)
            return Forgotten(**_value(connection.execute(_FORGET, keys)))

    def forget_rows(self, open_id: str) -> None:
        """Deletes the rows that name this person, but no job."""
        with self._connection(_ALL_OF_IT_S) as connection:
            connection.execute(_FORGET_ROWS, [open_id])

    def export(self, open_id: str) -> list[tuple[str, dict[str, Any]]]:
        """Table and row of what waits of a person."""
        with self._connection(_ALL_OF_IT_S) as connection:
            return connection.execute(_EXPORT, [open_id]).fetchall()

    def arrivals(self) -> dict[str, datetime]:
        """When something of each kind has last arrived; see `bot.queue.inbox`."""
        with self._connection() as connection:
            rows = _value(connection.execute(_ARRIVALS))
        return {kind: datetime.fromisoformat(one["last_at"]) for kind, one in rows.items()}

    def failed(self, one: Reference | None = None, *, limit: int = 100) -> list[Failed]:
        """What was given up, latest first, or that one."""
        query_args = (one.kind if one else None, one.id if one else None, limit)
        with self._connection() as connection:
            return [Failed(**row) for row in _value(connection.execute(_LIST_FAILED, query_args))]

    def unfinished_jobs(self, *, limit: int = 100) -> list[Unfinished]:
        """What workers have in hand, then what waits, oldest first."""
        with self._connection() as connection:
            return [
                Unfinished(**row) for row in _value(connection.execute(_LIST_UNFINISHED, [limit]))
            ]

    def cancel(self, job: int) -> bool:
        """Deletes a job that waits; whether it was there, and in no worker's hands."""
        with self._connection() as connection:
            return bool(_value(connection.execute(_CANCEL, [job])))

    def events(self, job: str) -> list[dict[str, str]]:
        """What happened to a job, oldest first: `type` and `at`."""
        with self._connection() as connection:
            rows: list[dict[str, str]] = _value(connection.execute(_EVENTS, [job]))
            return rows

    def retry(self, one: Reference, *, not_sent: bool = False) -> bool:
        """Puts it back to be tried again; whether it was there.

        `not_sent`: somebody has seen that its card is not in the chat.
        """
        with self._connection() as connection:
            return bool(_value(connection.execute(_RETRY, (one.kind, one.id, not_sent))))

    def drop(self, one: Reference) -> bool:
        """Deletes it for good; whether it was there."""
        with self._connection() as connection:
            return bool(_value(connection.execute(_DROP, (one.kind, one.id))))

    def unprotected_tables(self) -> list[str]:
        """Tables of the queue's schema without row-level security."""
        with self._connection() as connection:
            return [name for (name,) in connection.execute(_LIST_UNPROTECTED)]


def _value(cursor: psycopg.Cursor[Any]) -> Any:
    row = cursor.fetchone()
    return row[0] if row else {}
