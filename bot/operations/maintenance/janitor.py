"""What a worker puts in order while it works: old keys, failures, retention."""

from __future__ import annotations

import asyncio

import structlog

from bot.queue.inbox import QueueUnavailable
from bot.queue.table import JobTable
from bot.services import Services
from memory.errors import StoreError, StoreUnavailable
from memory.tables.operations import Operations

log = structlog.get_logger()

_EVERY_S = 3600.0
_KEYS_KEPT_H = 48
_FAILED_KEPT_DAYS = 30  # unless RETENTION_DAYS says otherwise: they hold people's words


async def keep_order(table: JobTable, services: Services) -> None:
    """Once an hour, for as long as the worker works."""
    while True:
        try:
            await table.prune(hours=_KEYS_KEPT_H)
        except QueueUnavailable as exc:
            log.warning("queue.not_pruned", error=str(exc))
        await _forget_records(table, services.settings.trace_days)
        await _forget_failed(table, services.settings.retention_days or _FAILED_KEPT_DAYS)
        await _apply_retention(table, services)
        await asyncio.sleep(_EVERY_S)


async def _forget_records(table: JobTable, days: int) -> None:
    try:
        await table.forget_turn_records(days=days)
    except QueueUnavailable as exc:
        log.warning("records.not_pruned", error=str(exc))


async def _forget_failed(table: JobTable, days: int) -> None:
    """Failed jobs, and what the memory refused, are kept for operators only so long."""
    try:
        forgotten_jobs = await table.forget_failed(days=days)
    except QueueUnavailable as exc:
        log.warning("queue.not_pruned", error=str(exc))
    else:
        if forgotten_jobs:
            log.warning("queue.failed_forgotten", days=days, deleted=forgotten_jobs)


async def _apply_retention(table: JobTable, services: Services) -> None:
    days = services.settings.retention_days
    if not days:
        return
    try:
        if old_jobs := await table.forget_old(days=days):
            log.warning("queue.old_forgotten", days=days, deleted=old_jobs)
    except QueueUnavailable as exc:
        log.warning("queue.not_pruned", error=str(exc))
    try:
        deleted_rows = await Operations(services.rpc).apply_retention(days)
    except StoreError as exc:
        away = isinstance(exc, StoreUnavailable)
        log.warning(
            "retention.postponed" if away else "retention.refused",
            error=type(exc).__name__,
            code=exc.code,
        )
    else:
        log.info("retention", days=days, deleted=deleted_rows)
