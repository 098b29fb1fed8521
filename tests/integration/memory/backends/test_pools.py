"""Pools whose server goes away: soon back, with few attempts, and nobody is left waiting."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import psycopg
import pytest

from memory.backends.connections import NoConnection, ThreadPool
from memory.backends.exchange import AskingConnection
from memory.backends.pool import Pool
from memory.deadlines import DeadlineConnection


@dataclass
class Gate:
    """What lies before the server: shut, it refuses; it counts who tries."""

    url: str
    is_open: bool = True
    tries: int = 0
    at_once: int = 0
    most_at_once: int = 0
    _changing: threading.Lock = field(default_factory=threading.Lock)

    def _enter(self) -> None:
        with self._changing:
            self.tries += 1
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)

    def _leave(self) -> None:
        with self._changing:
            self.at_once -= 1

    async def connect(self) -> AskingConnection:
        self._enter()
        try:
            await asyncio.sleep(0.01)
            if not self.is_open:
                raise psycopg.OperationalError("connection refused")
            return await AskingConnection.connect(self.url, autocommit=True)
        finally:
            self._leave()

    def connect_here(self) -> DeadlineConnection:
        self._enter()
        try:
            time.sleep(0.01)
            if not self.is_open:
                raise psycopg.OperationalError("connection refused")
            return DeadlineConnection.connect(self.url, autocommit=True)
        finally:
            self._leave()

    def cut(self, *processes: int) -> None:
        """As if the server had crashed: these of its processes end."""
        with psycopg.connect(self.url, autocommit=True) as owner:
            owner.execute(
                "select pg_terminate_backend(pid, 5000) from unnest(%s::int[]) pid",
                [list(processes)],
            )


@pytest.fixture
def gate(shared_database_url: str) -> Gate:
    return Gate(shared_database_url)


async def _asked(pool: Pool, within_s: float = 10) -> int:
    async with pool.connection(within_s) as connection:
        pid: int = await connection.ask(b"select pg_backend_pid()", ())
        return pid


@pytest.mark.anyio
async def test_everybody_who_waits_for_a_server_that_is_away_goes_on_soon_after(
    gate: Gate,
) -> None:
    gate.is_open = False
    async with Pool(gate.connect, size=4, timeout_s=10) as pool:
        waiting = [asyncio.create_task(_asked(pool)) for _ in range(50)]
        await asyncio.sleep(2.5)
        tries, gate.is_open = gate.tries, True
        back = time.monotonic()
        await asyncio.gather(*waiting)

    assert time.monotonic() - back < 1.5
    assert 5 <= tries <= 26
    assert gate.most_at_once == 1


@pytest.mark.anyio
async def test_nobody_waits_for_longer_than_they_may_and_then_nobody_tries(gate: Gate) -> None:
    gate.is_open = False
    async with Pool(gate.connect, size=2, timeout_s=10) as pool:
        started = time.monotonic()
        with pytest.raises(NoConnection):
            await _asked(pool, 0.5)
        assert time.monotonic() - started < 1.5
        await asyncio.sleep(0.5)
        tries = gate.tries
        await asyncio.sleep(0.5)
        assert gate.tries == tries

        gate.is_open = True
        assert await _asked(pool)


@pytest.mark.anyio
async def test_who_cannot_have_a_connection_of_their_own_gets_the_next_that_is_free(
    gate: Gate,
) -> None:
    async with Pool(gate.connect, size=2, timeout_s=10) as pool:
        async with pool.connection() as first:
            gate.is_open = False  # too many clients
            waiting = asyncio.create_task(_asked(pool, 5))
            await asyncio.sleep(0.3)
            assert not waiting.done()
        assert await waiting == first.info.backend_pid


@pytest.mark.anyio
async def test_who_gives_up_in_the_moment_of_success_loses_no_connection(gate: Gate) -> None:
    async with Pool(gate.connect, size=1, timeout_s=10) as pool:
        for pause_s in (0.0, 0.005, 0.01, 0.015, 0.02, 0.03) * 5:
            gate.cut(await _asked(pool))
            asking = asyncio.create_task(_asked(pool))
            await asyncio.sleep(pause_s)
            asking.cancel()
            await asyncio.wait({asking})
        assert await _asked(pool, 5)


@pytest.mark.anyio
async def test_it_is_known_when_the_server_is_reachable_again(gate: Gate) -> None:
    async with Pool(gate.connect, size=1, timeout_s=10) as pool:
        process = await _asked(pool)
        before = time.monotonic()
        assert not pool.lost_since(before)
        await asyncio.wait_for(pool.reachable(), 1)

        gate.is_open = False
        gate.cut(process)
        with pytest.raises(psycopg.OperationalError):
            await _asked(pool, 0.3)
        assert pool.lost_since(before)
        watching = [asyncio.create_task(pool.reachable()) for _ in range(20)]
        await asyncio.sleep(0.5)
        assert not any(task.done() for task in watching)
        gate.is_open = True
        await asyncio.wait_for(asyncio.gather(*watching), 1)


@pytest.mark.anyio
async def test_who_waits_when_the_pool_is_closed_is_told(gate: Gate) -> None:
    gate.is_open = False
    pool = Pool(gate.connect, size=1, timeout_s=10)
    await pool.open()
    waiting = asyncio.create_task(_asked(pool))
    await asyncio.sleep(0.1)
    await pool.close()
    with pytest.raises(NoConnection):
        await waiting
    with pytest.raises(NoConnection):
        await _asked(pool)


# For threads


@pytest.fixture
def threads(gate: Gate) -> Iterator[ThreadPool]:
    pool = ThreadPool(gate.connect_here, size=4)
    yield pool
    pool.close()


def _asked_here(pool: ThreadPool, within_s: float = 10) -> int:
    with pool.connection(time.monotonic() + within_s) as connection:
        return connection.info.backend_pid


def test_every_thread_that_waits_for_a_server_that_is_away_goes_on_soon_after(
    gate: Gate, threads: ThreadPool
) -> None:
    gate.is_open = False
    with ThreadPoolExecutor(20) as callers:
        waiting = [callers.submit(_asked_here, threads) for _ in range(20)]
        time.sleep(2.5)
        tries, gate.is_open = gate.tries, True
        back = time.monotonic()
        for one in waiting:
            one.result()

    assert time.monotonic() - back < 1.5
    assert 5 <= tries <= 26
    assert gate.most_at_once == 1


def test_no_thread_waits_for_longer_than_it_may_and_then_nobody_tries(
    gate: Gate, threads: ThreadPool
) -> None:
    gate.is_open = False
    started = time.monotonic()
    with pytest.raises(NoConnection):
        _asked_here(threads, 0.5)
    assert time.monotonic() - started < 1.5
    time.sleep(0.5)
    tries = gate.tries
    time.sleep(0.5)
    assert gate.tries == tries

    gate.is_open = True
    assert _asked_here(threads)


def test_a_connection_that_the_server_ended_is_not_handed_out(
    gate: Gate, threads: ThreadPool
) -> None:
    first = _asked_here(threads)
    gate.cut(first)

    assert threads.take_idle() is None
    assert _asked_here(threads) != first


def test_a_thread_that_cannot_have_a_connection_of_its_own_gets_the_next_that_is_free(
    gate: Gate, threads: ThreadPool
) -> None:
    with ThreadPoolExecutor(1) as callers:
        with threads.connection(time.monotonic() + 5) as first:
            gate.is_open = False
            waiting = callers.submit(_asked_here, threads, 5)
            time.sleep(0.3)
            assert not waiting.done()
        assert waiting.result() == first.info.backend_pid


def test_there_are_never_more_connections_than_the_pool_may_have(
    gate: Gate, threads: ThreadPool
) -> None:
    used: set[int] = set()

    def ask(_: int) -> None:
        with threads.connection(time.monotonic() + 10) as connection:
            used.add(connection.info.backend_pid)
            time.sleep(0.05)

    with ThreadPoolExecutor(16) as callers:
        list(callers.map(ask, range(48)))

    assert 1 <= len(used) <= 4
    assert gate.tries <= 4


def test_who_waits_when_the_pool_of_threads_is_closed_is_told(
    gate: Gate, threads: ThreadPool
) -> None:
    gate.is_open = False
    with ThreadPoolExecutor(1) as callers:
        waiting = callers.submit(_asked_here, threads)
        time.sleep(0.2)
        threads.close()
        with pytest.raises(NoConnection):
            waiting.result(5)
