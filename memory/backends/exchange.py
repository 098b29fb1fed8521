"""One message of several statements to Postgres and what comes back, by way of libpq itself.

A cursor of psycopg adapts, rewrites and counts for every case there is; a call of the memory knows
its case: text and numbers go out quoted, JSON comes back. Everything else that a connection does
(connecting, cancelling, transactions) stays with psycopg.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import orjson
import psycopg
from psycopg import errors, pq, sql
from psycopg.adapt import Transformer
from psycopg.rows import TupleRow

_JSON = frozenset({114, 3802})  # json, jsonb (pg_type.dat)
_ONE_DIGIT = bytes.maketrans(b"123456789", b"0" * 9)
_LONG_NUMBER = b"0" * 19  # digits: orjson makes a float of an integer beyond 64 bits
_CANCEL_S = 0.25  # and then whoever waits is told


class AskingConnection(psycopg.AsyncConnection[TupleRow]):
    """A connection that `ask` is cheap on."""

    made = since = 0.0
    """When its pool made it and got it back last, in monotonic seconds."""

    _listened_to: int | None = None  # the socket while the loop watches it for this class
    _awaited: tuple[list[pq.abc.PGresult], asyncio.Future[None]] | None = None

    async def wait(self, *args: Any, **more: Any) -> Any:
        """psycopg's own waiting, which has the loop watch the socket itself."""
        self._listen_no_more()
        return await super().wait(*args, **more)

    async def close(self) -> None:
        self._listen_no_more()  # its number may be another socket's next
        if self._awaited:
            _fail_ready(self._awaited[1], psycopg.OperationalError("the connection was closed"))
        await super().close()

    async def ask(self, query: bytes, args: Sequence[object], result_index: int = 0) -> Any:
        """The value of the first row of result `result_index`, counted from 0; None without a
        row."""
        [value] = await self.ask_each(query, args, [result_index])
        return value

    async def ask_each(
        self, query: bytes, args: Sequence[object], result_indexes: Sequence[int]
    ) -> list[Any]:
        """As `ask`, of several results. `query`: statements with `%s` for each of `args`.

        A cancellation is passed on to the server; the next one closes the connection. Raises
        `psycopg.Error`.
        """
        message = self._message(query, args)
        async with self.lock:
            results = await self._exchange(message)
        fatal_error = pq.ExecStatus.FATAL_ERROR
        if refusals := [result for result in results if result.status == fatal_error]:
            raise errors.error_from_result(refusals[0], encoding="utf-8")
        return [self._value(results[number]) for number in result_indexes]

    async def _exchange(self, message: bytes) -> list[pq.abc.PGresult]:
        pgconn = self.pgconn
        pgconn.send_query(message)
        try:
            if pgconn.flush():
                await self._flush()
            return await self._results()
        except asyncio.CancelledError:
            await self._give_up()
            raise

    async def _flush(self) -> None:
        """The server may have to be rid of something before it takes more."""
        pgconn, loop = self.pgconn, asyncio.get_running_loop()
        self._listen_no_more()
        number = pgconn.socket
        while pgconn.flush():
            ready = loop.create_future()
            loop.add_writer(number, _resolve_ready, ready)
            loop.add_reader(number, _resolve_ready, ready)
            try:
                await ready
            finally:
                loop.remove_writer(number)
                loop.remove_reader(number)
            pgconn.consume_input()

    async def _results(self) -> list[pq.abc.PGresult]:
        results: list[pq.abc.PGresult] = []
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        self._awaited = results, ready
        if self._listened_to is None:  # else it still is: two system calls an exchange
            self._listened_to = self.pgconn.socket
            loop.add_reader(self._listened_to, self._read_arrivals)
        try:
            self._read()  # what came before anybody waited for it
            await ready
        finally:
            self._awaited = None
        return results

    def _read_arrivals(self) -> None:
        """What the server says, also while nobody asks: a notice, or that it hangs up."""
        try:
            self.pgconn.consume_input()
            self._read()
        except psycopg.Error as exc:
            self._listen_no_more()
            if self._awaited:
                results, ready = self._awaited
                if not any(map(_refusal_of, results)):  # else the server said why it hung up
                    _fail_ready(ready, exc)
                _resolve_ready(ready)

    def _read(self) -> None:
        if self._awaited is None:
            return
        results, ready = self._awaited
        while not self.pgconn.is_busy():
            if (result := self.pgconn.get_result()) is None:
                _resolve_ready(ready)
                return
            results.append(result)

    def _listen_no_more(self) -> None:
        if self._listened_to is not None:
            asyncio.get_running_loop().remove_reader(self._listened_to)
            self._listened_to = None

    async def _give_up(self) -> None:
        """Has the server stop, as psycopg does it; what cannot be stopped is closed."""
        try:
            async with asyncio.timeout(_CANCEL_S):
                await self.cancel_safe(timeout=_CANCEL_S)
                await self._results()
        except Exception:  # noqa: BLE001  whatever it is, nobody knows the state of the connection
            self.finish()
        except BaseException:
            self.finish()
            raise

    def finish(self) -> None:
        """Closes the connection at once. Nobody may be waiting for an answer on it."""
        self._listen_no_more()
        self.pgconn.finish()

    def _message(self, query: bytes, args: Sequence[object]) -> bytes:
        escape = pq.Escaping(self.pgconn).escape_literal
        first, *others = _pieces(query)
        message = [first]
        for value, piece in zip(args, others, strict=True):
            if isinstance(value, str) and "\0" not in value:
                message += (escape(value.encode()), piece)
            else:
                message += (self._quote_statement(value), piece)
        return b"".join(message)

    def _quote_statement(self, value: object) -> bytes:
        if value is None:
            return b"NULL"
        if isinstance(value, bool):
            return b"true" if value else b"false"
        if isinstance(value, int):
            return b" %d" % value
        return sql.Literal(value).as_bytes(self)  # with a cast where it needs one

    def _value(self, result: pq.abc.PGresult) -> Any:
        if not result.ntuples:
            return None
        raw_value = result.get_value(0, 0)
        if raw_value is None:
            return None
        if result.ftype(0) in _JSON:
            is_long = _LONG_NUMBER in raw_value.translate(_ONE_DIGIT)
            return json.loads(raw_value) if is_long else orjson.loads(raw_value)
        loading = Transformer(self)
        loading.set_pgresult(result)
        return loading.load_row(0, tuple)[0]


@lru_cache(maxsize=512)
def _pieces(query: bytes) -> tuple[bytes, ...]:
    """What stands around the parameters."""
    return tuple(query.split(b"%s"))


def _refusal_of(result: pq.abc.PGresult) -> bool:
    return result.status == pq.ExecStatus.FATAL_ERROR


def _resolve_ready(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


def _fail_ready(ready: asyncio.Future[None], exc: psycopg.Error) -> None:
    if not ready.done():
        ready.set_exception(exc)
