"""The backends of the memory port; every contract test runs over each of them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from memory.store import MemoryStore
from tests.support.backends import Backend, PostgresBackend, SupabaseBackend, memory_at
from tests.support.people import Group


@pytest.fixture(params=["postgres", "supabase"])
def backend(request: pytest.FixtureRequest) -> Backend:
    """Where the memory lives; with the service key only the filters keep people apart."""
    if request.param == "postgres":
        server = request.getfixturevalue("postgres_server")
        return PostgresBackend(request.getfixturevalue("shared_database_url"), server.socket_folder)
    user_tokens = request.param == "supabase"
    return SupabaseBackend(request.getfixturevalue("supabase_lite"), user_tokens=user_tokens)


@pytest.fixture
async def memory(backend: Backend) -> AsyncIterator[MemoryStore]:
    async with memory_at(backend) as store:
        yield store


@pytest.fixture
def group() -> Group:
    """A Feishu group nobody else uses."""
    return Group()
