"""Which Postgres holds the queue: the configured one, or the embedded one started here."""

from __future__ import annotations

import structlog

from bot.settings import Settings, SettingsError
from bot.supervision import plan
from memory import migrations
from memory.backends import embedded
from memory.errors import ServerRefused

log = structlog.get_logger()


def database_url(settings: Settings) -> str:
    """The connection URL of queue and migrations.

    The embedded database is started and brought up to date; a configured one is only looked at:
    `scripts/migrate` (the release step) changes it. Raises `SettingsError`.
    """
    if settings.embedded_database:
        url = _embedded(settings)
        migrations.apply(url, report=lambda step: log.info("migrate", step=step))
        return url
    missing = migrations.pending(settings.database_url)
    if missing:
        log.error("database.outdated", missing=missing, next_step="run scripts/migrate")
    return settings.database_url


def _embedded(settings: Settings) -> str:
    try:
        if plan.has_database():
            return embedded.find(settings.data_dir)
        return embedded.start(settings.data_dir)
    except ServerRefused as exc:
        raise SettingsError(f"{exc}.") from exc
