"""Runs a worker's loops beside the turns: retention, members, records and rates.

Each loop runs for as long as the worker works, and logs what goes wrong. Features register loops
of their own (`bot.hooks`)."""

from __future__ import annotations

import asyncio
import contextlib
import itertools

import structlog

from bot.process import metrics
from bot.queue.inbox import QueueUnavailable
from bot.queue.person_rates import Asker
from bot.queue.table import JobTable
from bot.services import Services
from memory.errors import StoreError, StoreUnavailable
from memory.tables.operations import Operations

log = structlog.get_logger()
_ORDER_EVERY_S = 3600.0
_KEYS_KEPT_H = 48
_FAILED_KEPT_DAYS = 30  # unless RETENTION_DAYS says otherwise: they hold people's words

_MEMBERS_EVERY_S = 60.0
_MEMBERS_AT_MOST_EVERY_S = 1.0

_RECORDS_EVERY_S = 2.0
_CALLS_EVERY_ROUNDS = 15  # rounds: no limit of a few seconds hangs on them

_RATES_EVERY_S = 1.0


async def tend_retention(table: JobTable, services: Services) -> None:
    """Once an hour, for as long as the worker works."""
    while True:
        try:
            await table.prune(hours=_KEYS_KEPT_H)
        except QueueUnavailable as exc:
            log.warning("queue.not_pruned", error=str(exc))
        await _forget_records(table, services.settings.trace_days)
        await _forget_failed(table, services.settings.retention_days or _FAILED_KEPT_DAYS)
        await _apply_retention(table, services)
        await asyncio.sleep(_ORDER_EVERY_S)


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


async def tend_members(services: Services, *, every_s: float = _MEMBERS_EVERY_S) -> None:
    """Once a minute, and soon after there is a new chat, for as long as the worker works."""
    membership, has_found = services.membership, False
    while membership:
        membership.news.clear()
        try:
            has_found = has_found or await membership.find() >= 0
            await membership.refresh()
        except StoreUnavailable as exc:
            log.warning("members.memory_away", error=type(exc).__name__, code=exc.code)
        except StoreError as exc:
            log.error("members.refused", error=type(exc).__name__, code=exc.code)
        await asyncio.sleep(_MEMBERS_AT_MOST_EVERY_S)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(every_s):
                await membership.news.wait()


async def tend_turn_records(table: JobTable, services: Services) -> None:
    """Every two seconds, for as long as the worker works, and once more at its end."""
    try:
        for round in itertools.count(1):
            await write_turn_records(table, services)
            if round % _CALLS_EVERY_ROUNDS == 0:
                await write_calls(table, services)
            await asyncio.sleep(_RECORDS_EVERY_S)
    finally:
        await write_turn_records(table, services)
        await write_calls(table, services)


async def write_turn_records(table: JobTable, services: Services) -> None:
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


async def write_calls(table: JobTable, services: Services) -> None:
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


async def tend_person_rates(table: JobTable, services: Services) -> None:
    """Every second, for as long as the worker works."""
    while services.rates.per_minute:
        await asyncio.sleep(_RATES_EVERY_S)
        await share_rates_once(table, services)
        services.rates.forget_idle(services.clock())


async def share_rates_once(table: JobTable, services: Services) -> None:
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


async def is_first_to_tell(table: JobTable, services: Services, asker: Asker) -> bool:
    """Whether the person is to be told that requests are skipped: by one worker, once."""
    await share_rates_once(table, services)
    try:
        return await table.tell_person_rate(asker)
    except QueueUnavailable as exc:
        log.warning("rates.not_told", error=str(exc))
        return False
