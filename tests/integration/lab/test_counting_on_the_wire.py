"""The benchmark's counts of statements, transactions and round trips, against a real Postgres."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from lab.benchmark.setting import address
from lab.benchmark.wire import Counts, Wire, counting
from tests.support.postgres import Server, database_name

pytestmark = pytest.mark.anyio


@pytest.fixture
async def wire(postgres_server: Server, tmp_path: Path) -> AsyncIterator[Wire]:
    server = Path(postgres_server.socket_folder)
    async with counting(server, tmp_path, lambda pid: f"process {pid}") as wire:
        yield wire


@pytest.fixture
async def connection(
    wire: Wire, tmp_path: Path, blank_database_url: str
) -> AsyncIterator[psycopg.AsyncConnection]:
    url = address(tmp_path, database_name(blank_database_url))
    async with await psycopg.AsyncConnection.connect(url) as connection:
        yield connection


async def test_opening_a_connection_counts_nothing(
    wire: Wire, connection: psycopg.AsyncConnection
) -> None:
    assert wire.total() == Counts()


async def test_a_statement_by_itself_is_one_transaction_and_one_round_trip(
    wire: Wire, connection: psycopg.AsyncConnection
) -> None:
    await connection.set_autocommit(True)
    await connection.execute("select 1")
    await connection.execute("select %s::int", (1,))
    assert wire.total() == Counts(statements=2, transactions=2, round_trips=2)


async def test_begin_and_commit_are_statements_and_trips_of_one_transaction(
    wire: Wire, connection: psycopg.AsyncConnection
) -> None:
    async with connection.transaction():
        await connection.execute("select 1")
        await connection.execute("select 2")
    assert wire.total() == Counts(statements=4, transactions=1, round_trips=4)


async def test_what_fails_is_a_transaction_too(
    wire: Wire, connection: psycopg.AsyncConnection
) -> None:
    await connection.set_autocommit(True)
    with pytest.raises(psycopg.errors.DivisionByZero):
        await connection.execute("select 1 / 0")
    assert wire.total() == Counts(statements=1, transactions=1, round_trips=1)


async def test_what_is_sent_together_is_one_round_trip(
    wire: Wire, connection: psycopg.AsyncConnection
) -> None:
    await connection.set_autocommit(True)
    async with connection.pipeline():
        await connection.execute("select 1")
        await connection.execute("select 2")
    counts = wire.total()
    assert (counts.statements, counts.round_trips) == (2, 1)


async def test_answers_of_many_pieces_arrive_unchanged(
    wire: Wire, connection: psycopg.AsyncConnection
) -> None:
    cursor = await connection.execute("select repeat(%s, 300000)", ("é字Z",))
    row = await cursor.fetchone()
    assert row == ("é字Z" * 300_000,)
    assert wire.total().statements == 2  # BEGIN and the query


async def test_counts_are_kept_by_who_connected(
    wire: Wire, connection: psycopg.AsyncConnection
) -> None:
    await connection.execute("select 1")
    assert list(wire.by_name) == [f"process {os.getpid()}"]
