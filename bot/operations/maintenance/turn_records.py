"""Writes the records of turns, and hears who has used up the day's tokens, beside the turns."""

from __future__ import annotations

import asyncio
import itertools

import structlog

from bot.process import metrics
from bot.queue.inbox import QueueUnavailable
from bot.queue.table import JobTable
from bot.services import Services

log = structlog.get_logger()

_EVERY_S = 2.0
_CALLS_EVERY = 15  # rounds: no limit of a few seconds hangs on them


async def record_turns(table: JobTable, services: Services) -> None:
    """Every two seconds, for as long as the worker works, and once more at its end."""
    try:
        for round in itertools.count(1):
            await record_once(table, services)
            if round % _CALLS_EVERY == 0:
                await record_calls(table, services)
            await asyncio.sleep(_EVERY_S)
    finally:
        await record_once(table, services)
        await record_calls(table, services)


async def record_once(table: JobTable, services: Services) -> None:
    """Writes what waits. A database that is away gets it later."""
    settings = services.settings
    waiting_records = services.records.take()
    limits = (settings.usage_limit_person, settings.usage_limit_chat)
    try:
        if waiting_records:
            rows = [record.row() for record in waiting_records]
            await table.keep_turn_records(rows, keep=settings.trace_days > 0)
        if any(limits):
            day = services.now().date()
            people, chats = await table.usage_exhausted(day, *limits)
            services.allowance.hear(day, people, chats)
    except QueueUnavailable as exc:
        services.records.put_back(waiting_records)
        log.warning("records.wait", error=str(exc), records=len(waiting_records))


async def record_calls(table: JobTable, services: Services) -> None:
    """Adds up what was used beside the answers, and hears what is left of the month's calls."""
    usage = services.tally.take()
    if not usage:
        return
    try:
        used_calls = await table.keep_calls(services.now().date(), [one._asdict() for one in usage])
    except QueueUnavailable as exc:
        services.tally.put_back(usage)
        log.warning("calls.wait", error=str(exc))
        return
    metrics.FEISHU_MONTH_CALLS.set(used_calls)
    level = services.quota.hear(used_calls)
    if level:
        log.warning(
            "feishu.quota",
            used=used_calls,
            calls_per_month=services.quota.calls,
            next_step="a larger plan, STREAM_REPLIES=false, or FEISHU_CALLS_PER_MONTH as it is",
        )
