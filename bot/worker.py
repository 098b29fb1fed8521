"""The worker: takes events from the queue and handles them, many at a time, in order per thread.

`python -m bot.worker` runs it alone; `start_inline` runs it beside the web server. SIGTERM lets
running turns finish for 7 seconds and hands the rest back.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import structlog

from bot.agents.files import check_files
from bot.clicks import handle_click
from bot.connections import database_url, require_migrated
from bot.ending import ended
from bot.feishu import events
from bot.feishu.errors import FeishuFailure
from bot.interruptions import Interruptions
from bot.queue import jobs
from bot.queue.inbox import QUEUE
from bot.services import Services
from bot.settings import Settings, load
from bot.starting import look_at_database, look_at_names, one_sentence, require_port, say
from bot.telemetry import logs, metrics
from bot.turn import handle_message, handle_recall
from bot.upkeep.janitor import HEARTBEAT_S, STALLED_AFTER_S, keep_order
from bot.upkeep.left_cards import tend_left_cards
from bot.upkeep.tending import handle_tending
from bot.wiring import open_services
from memory.away.store import SpoolingStore
from memory.errors import StoreError, StoreUnavailable

log = structlog.get_logger()

_GRACE_S = 7.0
_NICE = 5  # Feishu waits for acknowledgements, on the same cores, and for nothing else


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
    """Works until `stop` is set; a database that goes away, or is not migrated, is waited for."""
    interruptions = Interruptions()
    while not stop.is_set():
        try:
            await asyncio.to_thread(require_migrated, url)
            async with open_services(settings, url) as services:
                await _work(settings, url, services, stop, interruptions.works)
        except Exception as exc:  # noqa: BLE001 (said by `Interruptions`, whatever it is)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(interruptions.happened(exc)):
                    await stop.wait()


async def _work(
    settings: Settings,
    url: str,
    services: Services,
    stop: asyncio.Event,
    begins: Callable[[], None],
) -> None:
    async def handler(payload: dict[str, Any], received_ms: int, attempt: int) -> None:
        await handle_event(services, payload, received_ms, attempt)

    async def tend(conversation_id: str, user_id: str, tenant_key: str, attempt: int) -> None:
        await handle_tending(services, conversation_id, user_id, tenant_key, attempt)

    app = jobs.worker_app(url, handler, size=min(4 + settings.worker_concurrency // 4, 12))
    jobs.add_tending(app, tend)
    services = replace(services, defer_tending=partial(jobs.defer_tending, app))
    async with app.open_async(), asyncio.TaskGroup() as tasks:
        working = tasks.create_task(
            app.run_worker_async(
                queues=[QUEUE],
                concurrency=settings.worker_concurrency + jobs.TENDING_AT_ONCE,
                install_signal_handlers=False,
                shutdown_graceful_timeout=_GRACE_S,
                update_heartbeat_interval=HEARTBEAT_S,
                stalled_worker_timeout=STALLED_AFTER_S,
                fetch_job_polling_interval=2.0,
                delete_jobs="successful",
            )
        )
        tending = [
            tasks.create_task(keep_order(app, services)),
            tasks.create_task(tend_left_cards(services)),
        ]
        if isinstance(services.store, SpoolingStore):
            tending.append(tasks.create_task(services.store.drain_forever(stop)))
        log.info("worker.started", concurrency=settings.worker_concurrency)
        begins()
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


class InlineWorker:
    """The worker in a thread of the web process, with an event loop of its own."""

    def __init__(self, settings: Settings, url: str) -> None:
        self._settings = settings
        self._url = url
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="worker", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Finishes or hands back running turns; returns within ten seconds."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(timeout=_GRACE_S + 1.5)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(run(self._settings, self._url, self._stop))


async def main(settings: Settings) -> None:
    """The stand-alone worker, until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    metrics.serve(settings.metrics_port)
    os.nice(_NICE)
    await run(settings, database_url(settings), stop)


if __name__ == "__main__":
    remarks = look_at_names()
    with one_sentence():
        configured = load()
        check_files(configured)
        require_port("METRICS_PORT", configured.metrics_port, host="127.0.0.1")
        remarks += look_at_database(configured)
    logs.configure(configured.log_level)
    say(remarks)
    asyncio.run(main(configured))
