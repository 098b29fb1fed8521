"""What a worker puts in order while it works: jobs of workers that died, old keys, retention."""

from __future__ import annotations

import asyncio

import procrastinate
import structlog

from bot.queue import jobs
from bot.services import Services
from bot.telemetry import metrics
from memory.errors import StoreError, StoreUnavailable
from memory.kept.operations import Operations

log = structlog.get_logger()

HEARTBEAT_S = 4.0
STALLED_AFTER_S = 14.0
_KEYS_KEPT_H = 48
_ROUNDS_AN_HOUR = int(3600 / HEARTBEAT_S)


async def keep_order(app: procrastinate.App, services: Services) -> None:
    """Takes over jobs of workers that died; hourly, forgets old keys and what is past retention."""
    rounds = 0
    while True:
        resumed = await jobs.resume_stalled(app, heartbeat_s=STALLED_AFTER_S)
        if resumed:
            metrics.STALLED.inc(resumed)
            log.warning("worker.resumed_stalled", jobs=resumed)
        if rounds % _ROUNDS_AN_HOUR == 0:
            await jobs.prune(app, hours=_KEYS_KEPT_H)
            await _apply_retention(services)
        rounds += 1
        await asyncio.sleep(HEARTBEAT_S)


async def _apply_retention(services: Services) -> None:
    days = services.settings.retention_days
    if not days:
        return
    try:
        deleted = await Operations(services.rpc).apply_retention(days)
    except StoreError as exc:
        away = isinstance(exc, StoreUnavailable)
        log.warning(
            "retention.postponed" if away else "retention.refused",
            error=type(exc).__name__,
            code=exc.code,
        )
    else:
        log.info("retention", days=days, deleted=deleted)
