"""Messages of several statements: what goes out comes back, and what goes wrong is said."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial

import psycopg
import pytest
from psycopg.types.json import Jsonb

from memory.backends import pool as pools
from memory.backends.connections import NoConnection
from memory.backends.pool import Pool
from memory.backends.postgres import connection_pool
from tests.support.queue import until

pytestmark = pytest.mark.anyio

_LONG = "long 长 " * 400_000
_HUGE = 123456789012345678901234567890


@pytest.fixture
async def pool(shared_database_url: str) -> AsyncIterator[Pool]:
    async with connection_pool(shared_database_url, size=1) as opened:
        yield opened


@pytest.mark.parametrize(
    ("cast", "value"),
    [
        ("text", "it's a \\ back'slash; select 1 -- 中文 %s"),
        pytest.param("text", _LONG, id="more than a socket takes at once"),
        ("text", ""),
        ("text", None),
        ("int", -7),
        ("numeric", _HUGE),
        ("float", 0.25),
        ("bool", True),
        ("bool", False),
        ("text[]", ["a", "b'c"]),
        ("timestamptz", datetime(2030, 1, 2, 3, 4, tzinfo=UTC)),
    ],
)
async def test_a_value_comes_back_as_it_went_out(pool: Pool, cast: str, value: object) -> None:
    async with pool.connection() as connection:
        query = f"select 1; select %s::{cast}, %s".encode()

        assert await connection.ask(query, (value, "another"), 1) == value


@pytest.mark.parametrize("value", [{"a": [1, None, "ü"]}, [], "text", _HUGE, {"n": _HUGE}, None])
async def test_json_comes_back_as_it_is(pool: Pool, value: object) -> None:
    async with pool.connection() as connection:
        assert await connection.ask(b"select %s::jsonb", (Jsonb(value),)) == value


async def test_results_without_a_row_or_a_value_are_none(pool: Pool) -> None:
    async with pool.connection() as connection:
        query = b"select 1 where false; select null::jsonb; select 'x'"

        assert await connection.ask_each(query, (), [0, 1, 2]) == [None, None, "x"]


async def test_a_message_is_one_transaction(pool: Pool) -> None:
    query = b"create table public.half_done (n int); select 1 / %s"
    async with pool.connection() as connection:
        with pytest.raises(psycopg.errors.DivisionByZero):
            await connection.ask(query, (0,))

        assert await connection.ask(b"select to_regclass('public.half_done')::text", ()) is None


async def test_text_that_postgres_cannot_keep_is_refused_before_it_is_sent(pool: Pool) -> None:
    async with pool.connection() as connection:
        with pytest.raises(psycopg.DataError):
            await connection.ask(b"select %s", ("a\0b",))

        assert await connection.ask(b"select %s", ("still there",)) == "still there"


async def test_as_many_values_as_places(pool: Pool) -> None:
    async with pool.connection() as connection:
        with pytest.raises(ValueError, match="argument"):
            await connection.ask(b"select %s", ("one", "too many"))


async def test_a_cancelled_call_ends_on_the_server_and_leaves_the_connection(pool: Pool) -> None:
    async with pool.connection() as connection:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await connection.ask(b"select pg_sleep(600)", ())

        assert await connection.ask(b"select %s", ("still there",)) == "still there"


async def test_a_connection_that_the_server_ended_is_replaced(
    pool: Pool, shared_database_url: str
) -> None:
    async with pool.connection() as connection:
        asking = asyncio.create_task(connection.ask(b"select pg_sleep(600)", ()))
        await _ended_by_somebody(connection.info.backend_pid, shared_database_url)
        with pytest.raises(psycopg.OperationalError):
            await asking

    async with pool.connection() as connection:
        assert await connection.ask(b"select 1", ()) == 1


async def test_a_connection_that_the_server_ended_while_nobody_asked_is_not_handed_out(
    pool: Pool, shared_database_url: str
) -> None:
    first = await _one_process(pool)
    async with await psycopg.AsyncConnection.connect(shared_database_url) as owner:
        await owner.execute("select pg_terminate_backend(%s, 5000)", (first,))

    async def noticed(_: str) -> bool:
        return pool._at_hand[0].closed

    await until(noticed, shared_database_url, True)

    assert await _one_process(pool) != first


async def test_who_waits_for_an_answer_is_told_that_the_connection_was_closed(pool: Pool) -> None:
    async with pool.connection() as connection:
        asking = asyncio.create_task(connection.ask(b"select pg_sleep(600)", ()))
        while connection._awaited is None:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await connection.close()
        with pytest.raises(psycopg.OperationalError):
            async with asyncio.timeout(60):
                await asking


async def test_what_the_server_says_while_nobody_asks_is_heard_and_read_once(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pool.connection() as connection:
        await connection.ask(b"select 1; listen said", ())
        calls = []
        monkeypatch.setattr(connection, "_read", partial(calls.append, None))
        async with await psycopg.AsyncConnection.connect(
            connection.info.dsn, autocommit=True
        ) as another:
            await another.execute("notify said, 'something'")
        await asyncio.sleep(0.2)
        monkeypatch.undo()

        assert 1 <= len(calls) <= 3, "it does not turn on the spot"
        assert await connection.ask(b"select 2", ()) == 2


async def test_psycopg_and_messages_of_ours_take_turns_on_one_connection(pool: Pool) -> None:
    async with pool.connection() as connection:
        for number in range(3):
            assert await connection.ask(b"select %s", (number,)) == number
            cursor = await connection.execute("select %s::int", (number,))
            assert await cursor.fetchone() == (number,)
            async with connection.transaction():
                assert await connection.ask(b"select %s", (number,)) == number


async def test_who_waits_for_a_connection_gets_it_in_turn(pool: Pool) -> None:
    order: list[int] = []

    async def ask(number: int) -> None:
        async with pool.connection() as connection:
            order.append(await connection.ask(b"select %s", (number,)))

    await asyncio.gather(*map(ask, range(30)))

    assert order == list(range(30))


async def test_who_waits_too_long_or_gives_up_leaves_the_line(pool: Pool) -> None:
    async with pool.connection():
        with pytest.raises(NoConnection):
            async with pool.connection(timeout=0.05):
                pass
        given_up = asyncio.create_task(_one(pool))
        await asyncio.sleep(0)
        given_up.cancel()

    assert await _one(pool) == 1


async def test_who_waits_in_a_line_that_moves_is_not_turned_away(
    shared_database_url: str,
) -> None:
    async with connection_pool(shared_database_url, size=1, timeout_s=0.02) as pool:
        async with pool.connection(timeout=30):
            waiting = asyncio.create_task(_one(pool))
            await asyncio.sleep(0)
            pool._returned = time.monotonic() + 3600  # connections come back all the time
            done, _ = await asyncio.wait({waiting}, timeout=0.2)
            assert not done
        assert await waiting == 1


async def test_there_is_another_connection_while_somebody_waits_longer_than_a_call_takes(
    shared_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connection_pool(shared_database_url, size=2) as pool:
        async with pool.connection() as one, pool.connection() as another:
            assert one is not another
            with pytest.raises(NoConnection):
                async with pool.connection(timeout=0.05):
                    pass
        monkeypatch.setattr(pools, "_PATIENCE_S", 30.0)
        assert len(await _used_by(pool, 30)) == 2  # it stays while there is something to do

        monkeypatch.setattr(pools, "_QUIET_S", 0.0)
        await _one(pool)
        assert len(await _used_by(pool, 30)) == 1


async def test_calls_that_wait_for_each_other_for_a_moment_share_a_connection(
    shared_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "_PATIENCE_S", 30.0)
    async with connection_pool(shared_database_url, size=4) as pool:
        assert len(await _used_by(pool, 30)) == 1


async def _used_by(pool: Pool, calls: int) -> set[int]:
    """The processes of the server that answered so many calls at once."""

    async def asked() -> int:
        async with pool.connection() as connection:
            pid: int = await connection.ask(b"select pg_backend_pid() from pg_sleep(0.001)", ())
            return pid

    return set(await asyncio.gather(*(asked() for _ in range(calls))))


async def _one_process(pool: Pool) -> int:
    async with pool.connection() as connection:
        pid: int = await connection.ask(b"select pg_backend_pid()", ())
        return pid


async def _one(pool: Pool) -> object:
    async with pool.connection() as connection:
        return await connection.ask(b"select 1", ())


async def _ended_by_somebody(pid: int, url: str) -> None:
    asleep = f"select count(*) from pg_stat_activity where pid = {pid} and wait_event = 'PgSleep'"

    async def sleeping(_: str) -> object:
        found = await (await owner.execute(asleep.encode())).fetchone()
        return found and found[0]

    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as owner:
        await until(sleeping, url, 1)
        await owner.execute("select pg_terminate_backend(%s)", (pid,))
