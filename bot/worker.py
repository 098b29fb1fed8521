"""The worker: takes events from the queue and handles them, many at a time, in order per thread.

`python -m bot.worker` is one worker; with INLINE_WORKER=1 a supervisor runs WORKERS of them beside
the web process. SIGTERM lets running turns finish for 7 seconds and hands the rest back.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import traceback
from dataclasses import replace
from functools import partial
from typing import Any

import procrastinate
import structlog

from bot.agents.files import check_files
from bot.clicks import handle_click
from bot.database import database_url
from bot.ending import ended
from bot.feishu import events
from bot.feishu.errors import FeishuFailure
from bot.queue import background, jobs
from bot.services import Services
from bot.settings import EXIT_STATUS, Settings, SettingsError, load
from bot.supervision import plan
from bot.telemetry import logs, metrics
from bot.turn import handle_message, handle_recall
from bot.upkeep.folding import handle_tending
from bot.upkeep.left_cards import tend_left_cards
from bot.upkeep.standing import Standing
from bot.wiring import open_services
from memory.away.store import SpoolingStore
from memory.errors import StoreError, StoreUnavailable
from memory.kept.operations import Operations

log = structlog.get_logger()

_GRACE_S = 7.0
_NICE = 5  # Feishu waits for acknowledgements, on the same cores, and for nothing else
_HEARTBEAT_S = 4.0
_STALLED_AFTER_S = 14.0
_RESTART_S = 2.0
_KEYS_KEPT_H = 48
_ROUNDS_AN_HOUR = int(3600 / _HEARTBEAT_S)


async def handle_event(
    services: Services, payload: dict[str, Any], received_ms: int, attempt: int
) -> None:
    """One job. A failure is logged by kind, without text, and raised so that the queue retries."""
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(attempt=attempt)
    try:
        envelope = events.parse_envelope(payload)
        if envelope.event_type == events.MESSAGE_RECEIVED:
            await handle_message(services, events.parse_message(envelope), received_ms)
        elif envelope.event_type == events.MESSAGE_RECALLED:
            await handle_recall(services, events.parse_recall(envelope))
        elif envelope.event_type == events.CARD_ACTION:
            await _click(services, events.parse_card_action(envelope), received_ms)
    except events.MalformedEvent as exc:
        log.warning("event.malformed", reason=str(exc))
    except jobs.MemoryAwaited:
        raise
    except (StoreError, FeishuFailure) as exc:
        if isinstance(exc, StoreError):
            metrics.MEMORY_ERRORS.labels(error=type(exc).__name__).inc()
        log.error("job.failed", error=type(exc).__name__, code=getattr(exc, "code", None))
        raise
    except Exception as exc:
        # The frames only: the message of an unforeseen exception may hold people's words.
        stack = "".join(traceback.format_tb(exc.__traceback__))
        log.error("job.failed", error=type(exc).__name__, stack=stack)
        raise


async def _click(services: Services, action: events.CardAction, received_ms: int) -> None:
    """A click needs the memory, which knows the button; what people write meanwhile goes first."""
    try:
        await handle_click(services, action, received_ms)
    except StoreUnavailable as exc:
        metrics.MEMORY_ERRORS.labels(error=type(exc).__name__).inc()
        log.warning("click.waits", error=type(exc).__name__, code=exc.code)
        raise jobs.MemoryAwaited("the memory is away") from exc


async def run(settings: Settings, url: str, stop: asyncio.Event) -> None:
    """Works until `stop` is set; a database that goes away is waited for."""
    standing = Standing(settings)
    while not stop.is_set():
        try:
            async with open_services(settings, url, standing.pace) as services:
                await _work(settings, url, services, standing, stop)
        except Exception:
            log.exception("worker.interrupted", retry_in_s=_RESTART_S)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_RESTART_S):
                    await stop.wait()


async def _work(
    settings: Settings, url: str, services: Services, standing: Standing, stop: asyncio.Event
) -> None:
    async def handler(payload: dict[str, Any], received_ms: int, attempt: int) -> None:
        await handle_event(services, payload, received_ms, attempt)

    async def tend(conversation_id: str, user_id: str, tenant_key: str, attempt: int) -> None:
        await handle_tending(services, conversation_id, user_id, tenant_key, attempt)

    app = jobs.worker_app(url, handler, size=min(4 + settings.worker_concurrency // 4, 12))
    background.add_tending(app, tend)
    services = replace(services, defer_tending=partial(background.defer_tending, app))
    async with app.open_async(), asyncio.TaskGroup() as tasks:
        working = tasks.create_task(
            app.run_worker_async(
                queues=[jobs.QUEUE],
                concurrency=settings.worker_concurrency + background.AT_ONCE,
                install_signal_handlers=False,
                shutdown_graceful_timeout=_GRACE_S,
                update_heartbeat_interval=_HEARTBEAT_S,
                stalled_worker_timeout=_STALLED_AFTER_S,
                fetch_job_polling_interval=2.0,
                delete_jobs="successful",
            )
        )
        tending = [
            tasks.create_task(_tend(app, services)),
            tasks.create_task(tend_left_cards(services)),
            tasks.create_task(standing.keep(app)),
        ]
        if isinstance(services.store, SpoolingStore):
            tending.append(tasks.create_task(services.store.drain_forever(stop)))
        log.info("worker.started", concurrency=settings.worker_concurrency)
        await _first(working, stop.wait())
        working.cancel()
        await ended(tending)
    log.info("worker.stopped")


async def _first(working: asyncio.Task[None], stopped: Any) -> None:
    waiter = asyncio.ensure_future(stopped)
    await asyncio.wait({working, waiter}, return_when=asyncio.FIRST_COMPLETED)
    waiter.cancel()
    if working.done():
        working.result()
        raise ConnectionError("the queue's worker ended by itself")


async def _tend(app: procrastinate.App, services: Services) -> None:
    """Takes over jobs of workers that died; hourly, forgets old keys and what is past retention."""
    rounds = 0
    while True:
        resumed = await jobs.resume_stalled(app, heartbeat_s=_STALLED_AFTER_S)
        if resumed:
            metrics.STALLED.inc(resumed)
            log.warning("worker.resumed_stalled", jobs=resumed)
        if rounds % _ROUNDS_AN_HOUR == 0:
            await jobs.prune(app, hours=_KEYS_KEPT_H)
            await _apply_retention(services)
        rounds += 1
        await asyncio.sleep(_HEARTBEAT_S)


async def _apply_retention(services: Services) -> None:
    days = services.settings.retention_days
    if not days:
        return
    try:
        deleted = await Operations(services.rpc).apply_retention(days)
    except StoreError as exc:
        log.warning("retention.postponed", error=type(exc).__name__)
    else:
        log.info("retention", days=days, deleted=deleted)


async def main(settings: Settings) -> None:
    """One worker, until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, _hung_up)
    metrics.serve(settings.metrics_port)
    os.nice(_NICE)
    await run(settings, database_url(settings), stop)


def _hung_up() -> None:
    """A terminal that closes, or somebody who hopes for new settings: neither ends a turn."""
    log.warning("worker.hung_up", next_step="start the worker anew to load code and settings")


if __name__ == "__main__":
    os.umask(0o077)
    plan.tie_to_supervisor()
    try:
        configured = load()
        check_files(configured)
        logs.configure(configured.log_level)
        asyncio.run(main(configured))
    except SettingsError as exc:
        sys.stderr.write(f"{exc}\n")
        raise SystemExit(EXIT_STATUS) from exc
