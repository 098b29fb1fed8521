"""The operators' way in: the configured memory and queue, opened for a script and closed again."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import psycopg

from bot.queue.operations import QueueOperations
from bot.settings import Settings
from memory import migrations
from memory.backends import embedded
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.errors import ServerRefused
from memory.kept.operations import Operations
from memory.kept.people import PeopleStore
from memory.store import MemoryStore, Rpc

# Operators read whole tables; the message path has limits of its own.
_TIMEOUT_S = 120.0
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class NotConfigured(Exception):
    """The configured database cannot be used; the message says what to do."""


@dataclass(frozen=True)
class Desk:
    """What an operator works with. `backend` names the memory's place without secrets."""

    settings: Settings
    backend: str
    rpc: Rpc
    queue: QueueOperations

    @property
    def memory(self) -> MemoryStore:
        return MemoryStore(self.rpc)

    @property
    def people(self) -> PeopleStore:
        return PeopleStore(self.rpc)

    @property
    def operations(self) -> Operations:
        return Operations(self.rpc)


@asynccontextmanager
async def open_desk(settings: Settings) -> AsyncIterator[Desk]:
    """Connects as configured. Raises `NotConfigured`."""
    url = _database_url(settings)
    rpc = await _open_rpc(settings, url)
    try:
        yield Desk(settings, _backend(settings), rpc, QueueOperations(url))
    finally:
        await rpc.close()


def since(text: str, now: datetime | None = None) -> str:
    """`2h`, `7d`, or an ISO 8601 date or time, as ISO 8601. Raises `ValueError`."""
    if relative := re.fullmatch(r"(\d{1,6})([mhdw])", text.strip()):
        age = timedelta(**{_UNITS[relative[2]]: int(relative[1])})
        return ((now or datetime.now(UTC)) - age).isoformat()
    moment = datetime.fromisoformat(text.strip())
    return (moment if moment.tzinfo else moment.astimezone()).isoformat()


def _database_url(settings: Settings) -> str:
    """The configured database must be up to date; the embedded one is brought there, as always."""
    try:
        if settings.embedded_database:
            url = embedded.start(settings.data_dir)
            migrations.apply(url)
            return url
        missing = migrations.pending(settings.database_url)
    except ServerRefused as exc:
        raise NotConfigured(str(exc)) from exc
    except psycopg.Error as exc:
        raise NotConfigured(
            f"the database does not answer ({type(exc).__name__}): check DATABASE_URL, and that "
            "the server is up"
        ) from exc
    if missing:
        raise NotConfigured(f"the database lacks {', '.join(missing)}: run scripts/migrate")
    return settings.database_url


async def _open_rpc(settings: Settings, url: str) -> Rpc:
    if settings.supabase_url:
        from memory.backends.supabase import (
            SupabaseRpc,  # 20 MB that the embedded database does not need
        )

        return SupabaseRpc(
            settings.supabase_url,
            publishable_key=settings.supabase_publishable_key,
            secret_key=settings.supabase_secret_key,
            jwt_secret=settings.supabase_jwt_secret or None,
            timeout_s=_TIMEOUT_S,
        )
    pool = connection_pool(url, size=2, timeout_s=10.0)
    await pool.open()
    return PostgresRpc(pool, timeout_s=_TIMEOUT_S)


def _backend(settings: Settings) -> str:
    if settings.supabase_url:
        return f"Supabase at {settings.supabase_url}"
    if settings.embedded_database:
        return f"embedded Postgres in {settings.data_dir}"
    return "Postgres at DATABASE_URL"
