"""Queues the jobs of timers whose time has come. A timer is taken by one worker; if that one dies
before the job is queued, another takes it a few minutes later."""

from __future__ import annotations

import asyncio

import structlog

from bot.queue.inbox import QueueUnavailable
from bot.queue.table import JobTable
from bot.services import Services
from memory.errors import StoreError, StoreUnavailable
from memory.tables.timers import TimerStore

log = structlog.get_logger()

_EVERY_S = 3.0
_AFTER_TROUBLE_S = 30.0
_AT_ONCE = 50


async def tend_timers(services: Services, table: JobTable) -> None:
    """Every few seconds, for as long as the worker works."""
    while True:
        could = await queue_due(services, table)
        await asyncio.sleep(_EVERY_S if could else _AFTER_TROUBLE_S)


async def queue_due(services: Services, table: JobTable) -> bool:
    """Queues what is due; whether that could be done. Never raises."""
    try:
        while due := await TimerStore(services.rpc).take_due(_AT_ONCE):
            for one in due:
                await table.queue_timer(one, int(services.clock() * 1000))
    except (StoreUnavailable, QueueUnavailable) as exc:
        log.warning("timers.away", error=type(exc).__name__)
        return False
    except StoreError as exc:
        log.error("timers.refused", error=type(exc).__name__, code=exc.code)
        return False
    return True
