"""The edge of a hosted project ends HTTP/2 connections while calls are under way."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from lab.doubles import lite
from lab.doubles.lite import SupabaseLite
from memory.backends import supabase
from memory.backends.postgres import connection_pool
from memory.backends.supabase import SupabaseRpc, key_of_secret
from memory.fallback.breaker import BreakingRpc, CircuitBreaker
from memory.fallback.store import OutageStore
from memory.fallback.store_jobs import StoreJobs
from tests.support.h2_edge import H2Edge, Manner, h2_edge
from tests.support.people import Group

pytestmark = pytest.mark.anyio

_PATIENT_S = 30.0  # connections are what ends here, not the time of a call


@asynccontextmanager
async def store_behind(
    edge: H2Edge, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[OutageStore]:
    trusted = ssl.create_default_context(cafile=str(edge.certificate))
    monkeypatch.setattr(supabase, "_trusted_context", lambda: trusted)
    rpc = SupabaseRpc(
        edge.url,
        publishable_key=lite.PUBLISHABLE_KEY,
        secret_key=lite.SECRET_KEY,
        signing=key_of_secret(lite.JWT_SECRET),
        timeout_s=_PATIENT_S,
    )
    async with connection_pool(database_url, size=2) as pool:
        memory = BreakingRpc(rpc, CircuitBreaker(), hurried_s=_PATIENT_S)
        yield OutageStore(memory, StoreJobs(pool))
    await rpc.close()


@pytest.mark.parametrize("every", [9, 2])
@pytest.mark.parametrize("manner", ["protocol", "graceful", "reset", "silent"])
async def test_no_turn_loses_its_memory_where_connections_end_now_and_then(
    supabase_lite: SupabaseLite,
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    manner: Manner,
    every: int,
) -> None:
    degraded = 0
    async with (
        h2_edge(supabase_lite.url, tmp_path, manner, every=every) as edge,
        store_behind(edge, database_url, monkeypatch) as store,
    ):

        async def turn(number: int) -> bool:
            group = Group()
            context, turn_id = group.turn(), group.message(f"q{number}")
            opened = await store.begin_turn(context, turn_id=turn_id, content="Q")
            await store.working_memory(context)
            return opened.degraded

        for _ in range(3):
            degraded += sum(await asyncio.gather(*map(turn, range(6))))
        state = store._breaker.state

    assert edge.seen >= 36
    assert edge.connections > 1 or manner == "reset"
    assert (degraded, state) == (0, "closed")
