"""A connection to Postgres that is given up when the server says nothing.

`statement_timeout` is kept by the server; one that hangs, or a network that swallows everything,
keeps nothing, and libpq waits for ever.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any, TypeVar

import psycopg
from psycopg.rows import TupleRow

T = TypeVar("T")


class NoAnswer(psycopg.OperationalError):
    """The server did not answer in time; what it was asked may be done or not."""


class DeadlineConnection(psycopg.Connection[TupleRow]):
    """As psycopg's own; what is still under way at `until` (monotonic seconds) is given up with the
    connection, as `NoAnswer`."""

    until: float | None = None

    @contextlib.contextmanager
    def until_then(self, moment: float) -> Iterator[None]:
        """The statements of the block have to be done by then."""
        self.until = moment
        try:
            yield
        finally:
            self.until = None

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        if self.until is None:
            return super().wait(gen, *args, **kwargs)
        kwargs["timeout"] = max(0.0, self.until - time.monotonic())
        try:
            return super().wait(gen, *args, **kwargs)
        except psycopg.OperationalError as exc:
            if exc.sqlstate or time.monotonic() < self.until:
                raise
            self.pgconn.finish()  # nobody knows what it would say next
            raise NoAnswer("no answer in time") from exc
