"""Ways into a database of the test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest

from memory.backends.postgres import PostgresRpc, connection_pool


@pytest.fixture
async def rpc(database_url: str) -> AsyncIterator[PostgresRpc]:
    pool = connection_pool(database_url, size=4)
    await pool.open()
    yield PostgresRpc(pool)
    await pool.close()


@pytest.fixture
def connection(database_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection
