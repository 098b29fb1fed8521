"""Sees to it that every import that is being read, or removed, has a job.

Each step queues the next. One that was not queued, because a worker died or another part of the bot
began the import, is found here: at once when a worker starts, and then every minute.
"""

from __future__ import annotations

import asyncio

import structlog

from bot.queue.inbox import QueueUnavailable
from bot.queue.table import JobTable
from bot.services import Services
from memory.errors import StoreError, StoreUnavailable
from memory.tables.imports import ImportStore

log = structlog.get_logger()

_EVERY_S = 60.0


async def tend_imports(services: Services, table: JobTable) -> None:
    """Once a minute, for as long as the worker works."""
    while True:
        await queue_idle(services, table)
        await asyncio.sleep(_EVERY_S)


async def queue_idle(services: Services, table: JobTable) -> int:
    """Queues a step of each import that has none. Returns how many. Never raises."""
    queue_count = 0
    try:
        for one in await ImportStore(services.rpc).at_work():
            queue_count += await table.queue_idle_import(one.id)
    except (StoreUnavailable, QueueUnavailable) as exc:
        log.warning("imports.away", error=type(exc).__name__)
    except StoreError as exc:
        log.error("imports.refused", error=type(exc).__name__, code=exc.code)
    return queue_count
