"""Shares with the other workers how much each person has asked for."""

from __future__ import annotations

import asyncio

import structlog

from bot.queue.inbox import QueueUnavailable
from bot.queue.person_rates import Asker
from bot.queue.table import JobTable
from bot.services import Services

log = structlog.get_logger()

_EVERY_S = 1.0


async def share_person_rates(table: JobTable, services: Services) -> None:
    """Every second, for as long as the worker works."""
    while services.rates.per_minute:
        await asyncio.sleep(_EVERY_S)
        await share_once(table, services)
        services.rates.forget_idle(services.clock())


async def share_once(table: JobTable, services: Services) -> None:
    """What could not be shared is shared with the next round."""
    rates = services.rates
    spent_requests = rates.take_unshared()
    if not spent_requests:
        return
    try:
        rates.hear(await table.share_person_rates(spent_requests, rates.per_minute))
    except QueueUnavailable as exc:
        rates.put_back(spent_requests)
        log.warning("rates.wait", error=str(exc))


async def tell_first(table: JobTable, services: Services, asker: Asker) -> bool:
    """Whether the person is to be told that requests are skipped: by one worker, once."""
    await share_once(table, services)
    try:
        return await table.tell_person_rate(asker)
    except QueueUnavailable as exc:
        log.warning("rates.not_told", error=str(exc))
        return False
