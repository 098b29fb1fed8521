"""The places the memory can live in, as the contract suite sees them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from lab.doubles.lite import SupabaseLite
from memory.backends.connections import has_sessions
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.backends.supabase import SupabaseRpc, key_of_secret
from memory.rpc import Rpc
from memory.scope import AgentMemoryContext, Sharing
from memory.store import MemoryStore
from tests.support.postgres import database_name
from tests.support.relay import Connect, Streams

# The functions that the running test reached through Supabase's API.
called_over_the_api: set[str] = set()


class Backend(Protocol):
    """A migrated database and a way to reach it, directly or through a relay on `port`."""

    database_url: str

    @asynccontextmanager
    def rpc(
        self, *, port: int | None = None, timeout_s: float = 10.0, sharing: Sharing = "chat"
    ) -> AsyncIterator[Rpc]: ...

    @property
    def connect(self) -> Connect:
        """Opens a raw connection to the server, for a relay."""


@dataclass(frozen=True, slots=True)
class PostgresBackend:
    """A direct connection; the policies hold through the role and claims of each call."""

    database_url: str
    socket_folder: str

    @asynccontextmanager
    async def rpc(
        self, *, port: int | None = None, timeout_s: float = 10.0, sharing: Sharing = "chat"
    ) -> AsyncIterator[Rpc]:
        url = self.database_url
        if port is not None:
            url = f"postgresql://postgres@127.0.0.1:{port}/{database_name(url)}"
        await asyncio.to_thread(has_sessions, url)  # a relay may run in this event loop
        pool = connection_pool(url, timeout_s=timeout_s)
        await pool.open()
        rpc = PostgresRpc(pool, timeout_s=timeout_s, sharing=sharing)
        try:
            yield rpc
        finally:
            await rpc.close()

    async def connect(self) -> Streams:
        return await asyncio.open_unix_connection(f"{self.socket_folder}/.s.PGSQL.5432")


class _RecordedSupabaseRpc(SupabaseRpc):
    async def call(
        self, function: str, params: Mapping[str, object], context: AgentMemoryContext | None
    ) -> Any:
        result = await super().call(function, params, context)
        called_over_the_api.add(function)
        return result


@dataclass(frozen=True, slots=True)
class SupabaseBackend:
    """The real client over HTTP."""

    server: SupabaseLite

    @property
    def database_url(self) -> str:
        return self.server.database_url

    @asynccontextmanager
    async def rpc(
        self, *, port: int | None = None, timeout_s: float = 10.0, sharing: Sharing = "chat"
    ) -> AsyncIterator[Rpc]:
        rpc = _RecordedSupabaseRpc(
            f"http://127.0.0.1:{port or self.server.port}",
            publishable_key=self.server.publishable_key,
            secret_key=self.server.secret_key,
            signing=key_of_secret(self.server.jwt_secret),
            timeout_s=timeout_s,
            sharing=sharing,
        )
        try:
            yield rpc
        finally:
            await rpc.close()

    async def connect(self) -> Streams:
        return await asyncio.open_connection("127.0.0.1", self.server.port)


@asynccontextmanager
async def memory_at(backend: Backend, **options: object) -> AsyncIterator[MemoryStore]:
    """The memory port over `backend`."""
    async with backend.rpc(**options) as rpc:  # type: ignore[arg-type]
        yield MemoryStore(rpc)
