"""Which transport reaches the memory: Supabase's API, or the database directly."""

from __future__ import annotations

import structlog

from bot.settings import Settings
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.rpc import Rpc

log = structlog.get_logger()


async def open_rpc(settings: Settings, url: str, *, size: int = 8) -> Rpc:
    """The configured transport. `url`: the database, where it is used directly, with `size`
    connections at most."""
    if settings.supabase_url:
        from memory.backends.supabase import (
            SupabaseRpc,  # 20 MB that the embedded database does not need
        )

        if not settings.supabase_jwt_secret:
            log.warning(
                "memory.isolation_not_enforced",
                next_step="set SUPABASE_JWT_SECRET: without it the database no longer enforces "
                "isolation, only the filters of the SQL functions do",
            )
        return SupabaseRpc(
            settings.supabase_url,
            publishable_key=settings.supabase_publishable_key,
            secret_key=settings.supabase_secret_key,
            jwt_secret=settings.supabase_jwt_secret or None,
        )
    pool = connection_pool(url, size=size)
    await pool.open()
    return PostgresRpc(pool)
