"""Writes the records of turns, and hears who has used up the day's tokens, beside the turns."""

from __future__ import annotations

import asyncio

import structlog

from bot.queue.inbox import QueueUnavailable
from bot.queue.table import JobTable
from bot.services import Services

log = structlog.get_logger()

_EVERY_S = 2.0


async def record_turns(table: JobTable, services: Services) -> None:
    """Every two seconds, for as long as the worker works, and once more at its end."""
    try:
        while True:
            await record_once(table, services)
            await asyncio.sleep(_EVERY_S)
    finally:
        await record_once(table, services)


async def record_once(table: JobTable, services: Services) -> None:
    """Writes what waits. A database that is away gets it later."""
    settings = services.settings
    taken = services.records.take()
    limits = (settings.usage_limit_person, settings.usage_limit_chat)
    try:
        if taken:
            rows = [record.row() for record in taken]
            await table.keep_turn_records(rows, keep=settings.trace_days > 0)
        if any(limits):
            day = services.now().date()
            people, chats = await table.usage_exhausted(day, *limits)
            services.allowance.hear(day, people, chats)
    except QueueUnavailable as exc:
        services.records.put_back(taken)
        log.warning("records.wait", error=str(exc), records=len(taken))
