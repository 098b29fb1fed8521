"""The backends of the memory port; every contract test runs over each of them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from memory.store import MemoryStore
from tests.support.backends import Backend, PostgresBackend, SupabaseBackend, memory_at
from tests.support.people import Group


@pytest.fixture(params=["postgres", "supabase"])
def backend(request: pytest.FixtureRequest) -> Backend:
    """Where the memory lives."""
    if request.param == "postgres":
        server = request.getfixturevalue("postgres_server")
        return PostgresBackend(request.getfixturevalue("shared_database_url"), server.socket_folder)
    return SupabaseBackend(request.getfixturevalue("supabase_lite"))


@pytest.fixture
async def memory(backend: Backend) -> AsyncIterator[MemoryStore]:
    async with memory_at(backend) as store:
        yield store


@pytest.fixture
async def apart(backend: Backend) -> AsyncIterator[MemoryStore]:
    """The memory where people are kept apart (`MEMORY_SHARING=person`)."""
    async with memory_at(backend, sharing="person") as store:
        yield store


@pytest.fixture
def group() -> Group:
    """A Feishu group nobody else uses."""
    return Group()
