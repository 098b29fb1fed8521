"""The memory port; `tests.support.routes` says which backends a test runs over."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from memory.store import MemoryStore
from tests.support.backends import Backend, memory_at
from tests.support.people import Group


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
