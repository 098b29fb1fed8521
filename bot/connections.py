"""The configured connections: the database that holds the queue, and the way to the memory."""

from __future__ import annotations

import psycopg
import structlog

from bot.settings import Settings
from memory import migrations
from memory.backends import embedded
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.rpc import Rpc

log = structlog.get_logger()


class NotConfigured(Exception):
    """The configured database cannot be used; the message says what to do."""


def database_url(settings: Settings, *, strict: bool = False) -> str:
    """The connection URL of queue and migrations.

    The embedded database is started and brought up to date; a configured one is only looked at:
    `scripts/migrate` (the release step) changes it. A `strict` caller gets `NotConfigured` where it
    does not answer or lacks a migration, the others a line in the log.
    """
    if not strict:
        return _database_url(settings)
    try:
        return _database_url(settings, strict=True)
    except psycopg.Error as exc:
        raise NotConfigured(
            f"the database does not answer ({type(exc).__name__}): check DATABASE_URL, and that "
            "the server is up"
        ) from exc


def _database_url(settings: Settings, *, strict: bool = False) -> str:
    if settings.embedded_database:
        url = embedded.start(settings.data_dir)
        migrations.apply(url, report=_unsaid if strict else _logged)
        return url
    missing = migrations.pending(settings.database_url)
    if missing and strict:
        raise NotConfigured(f"the database lacks {', '.join(missing)}: run scripts/migrate")
    if missing:
        log.error("database.outdated", missing=missing, next_step="run scripts/migrate")
    return settings.database_url


async def open_rpc(
    settings: Settings, url: str, *, size: int = 8, timeout_s: float = 5.0, wait_s: float = 5.0
) -> Rpc:
    """The configured transport of the memory: Supabase's API, or the database directly.

    `url`: the database, where it is used directly, with `size` connections at most, for which
    `wait_s` is waited. A call takes at most `timeout_s`.
    """
    if not settings.supabase_url:
        pool = connection_pool(url, size=size, timeout_s=wait_s)
        await pool.open()
        return PostgresRpc(pool, timeout_s=timeout_s)
    from memory.backends.supabase import SupabaseRpc  # 20 MB that the database does not need

    return SupabaseRpc(
        settings.supabase_url,
        publishable_key=settings.supabase_publishable_key,
        secret_key=settings.supabase_secret_key,
        jwt_secret=settings.supabase_jwt_secret or None,
        timeout_s=timeout_s,
    )


def _logged(step: str) -> None:
    log.info("migrate", step=step)


def _unsaid(_: str) -> None:
    """A script's output is its own."""
