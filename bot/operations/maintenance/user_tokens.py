"""Sees to it that what is owed to people for their own tokens has a job: a look whether they have
approved, a word that it has ended, another seal.

Each step queues the next. One that was not queued, because a worker died, is found here.
"""

from __future__ import annotations

import asyncio

import structlog

from bot.queue.inbox import QueueUnavailable
from bot.queue.table import JobTable
from bot.services import Services
from memory.errors import StoreError, StoreUnavailable

log = structlog.get_logger()

_EVERY_S = 20.0


async def tend_user_tokens(services: Services, table: JobTable) -> None:
    """Every 20 s, for as long as the worker works."""
    while services.access is not None:
        await queue_owed(services, table)
        await asyncio.sleep(_EVERY_S)


async def queue_owed(services: Services, table: JobTable) -> int:
    """Queues a step for each person who has none. Returns how many. Never raises."""
    queue_count = 0
    if services.access is None:
        return queue_count
    try:
        for one in await services.access.store.to_tend():
            queue_count += await table.queue_connect(one.person, why=one.why, if_idle=True)
    except (StoreUnavailable, QueueUnavailable) as exc:
        log.warning("user_tokens.away", error=type(exc).__name__)
    except StoreError as exc:
        log.error("user_tokens.refused", error=type(exc).__name__, code=exc.code)
    return queue_count
