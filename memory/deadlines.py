"""A connection to Postgres that is given up when the server says nothing.

`statement_timeout` is kept by the server; one that hangs, or a network that swallows everything,
keeps nothing, and libpq waits for ever.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import psycopg
from psycopg import errors, generators, pq
from psycopg.rows import TupleRow

_MOST_PREPARED = 8  # of one connection: each costs the server memory until it is closed
_GOOD = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)


class NoAnswer(psycopg.OperationalError):
    """The server did not answer in time; what it was asked may be done or not."""


class DeadlineConnection(psycopg.Connection[TupleRow]):
    """As psycopg's own; what is still under way at `until` (monotonic seconds) is given up with the
    connection, as `NoAnswer`."""

    until: float | None = None
    made = since = 0.0
    """When its pool made it and got it back last, in monotonic seconds."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._prepared_as: dict[bytes, bytes] = {}

    @contextlib.contextmanager
    def until_then(self, moment: float) -> Iterator[None]:
        """The statements of the block have to be done by then."""
        self.until = moment
        try:
            yield
        finally:
            self.until = None

    def ask(self, query: bytes, values: Sequence[bytes]) -> list[bytes | None]:
        """The first column of what `query`, with `$1` and so on for `values`, gives; all as text.

        Past psycopg's cursors, which adapt and count for every case there is: in half the time.
        Where statements may be prepared, the first eight queries of a connection are, each once; so
        values belong into `values`. Raises `psycopg.Error`.
        """
        with self.lock:
            values_found: list[bytes | None] = self.wait(self.asking(query, values))
        return values_found

    def asking(
        self, query: bytes, values: Sequence[bytes]
    ) -> Generator[int, int, list[bytes | None]]:
        """The same for who waits in a loop of their own: it yields what to wait for on the socket,
        and is sent what is there (`psycopg.waiting.Wait` and `Ready`)."""
        if name := (yield from self._name(query)):
            self.pgconn.send_query_prepared(name, values)
        else:
            self.pgconn.send_query_params(query, values)
        result = yield from self._answer()
        return [result.get_value(row, 0) for row in range(result.ntuples)]

    def _name(self, query: bytes) -> Generator[Any, Any, bytes | None]:
        """What `query` was prepared as, now or before; None: it is to be sent as it is."""
        if self.prepare_threshold is None:
            return None
        if query not in self._prepared_as and len(self._prepared_as) < _MOST_PREPARED:
            name = b"asked_%d" % len(self._prepared_as)
            self.pgconn.send_prepare(name, query)
            yield from self._answer()
            self._prepared_as[query] = name
        return self._prepared_as.get(query)

    def _answer(self) -> Generator[Any, Any, pq.abc.PGresult]:
        results: list[pq.abc.PGresult] = yield from generators.execute(self.pgconn)
        for result in results:
            if result.status not in _GOOD:
                raise errors.error_from_result(result, encoding="utf-8")
        return results[-1]

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
