"""The worker: takes events from the queue and handles them, many at a time, in order per thread.

`python -m bot.worker` is one worker; with INLINE_WORKER=1 a supervisor runs WORKERS of them beside
the web process. SIGTERM lets running turns finish for 7 seconds and hands the rest back.
"""

from __future__ import annotations

from bot.process import logs  # before all that log: it loads structlog without Rich

# isort: split
import asyncio
import contextlib
import gc
import os
import signal
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import structlog

from bot.answering.between_turns import handle_tending
from bot.answering.unfinished_turns import give_up, tend_left_cards, tend_pending_replies
from bot.card_actions.clicks import ask_again, handle_click
from bot.card_actions.confirmation import consent_to_pending
from bot.card_actions.menu_and_reactions import handle_menu_press, handle_reaction
from bot.feishu import events, other_events
from bot.feishu.errors import FeishuError, FeishuFailure, Unreachable
from bot.feishu.events import Envelope
from bot.hooks import FeatureJob
from bot.listening.turn_request import TurnRequest
from bot.operations.maintenance import (
    WorkerPresence,
    is_first_to_tell,
    prepare_first_answer,
    rehearse_turns,
    tend_members,
    tend_person_rates,
    tend_retention,
    tend_turn_records,
)
from bot.operations.startup_checks import (
    exit_with_sentence,
    log_remarks,
    look_at_database,
    look_at_names,
    look_at_proxies,
    require_files,
    require_port,
)
from bot.outbox.retractions import (
    handle_retraction,
    tend_receipts,
    tend_withdrawals,
    withdraw_cards,
)
from bot.process import metrics, plan
from bot.process.concurrency import cancel_tasks, room_to_begin, turn_capacity
from bot.process.metrics import LoopWatch
from bot.process.plan import RunDirectory
from bot.queue.connections import Interruptions, database_url, require_migrated
from bot.queue.consumer import Consumer, Handlers, Lease
from bot.queue.inbox import QueueUnavailable
from bot.queue.jobs import (
    EVENT_TASK,
    STORE_TASK,
    TENDING_TASK,
    Hopeless,
    Job,
    Later,
)
from bot.queue.table import IMPORTS_AT_ONCE, TENDING_AT_ONCE, JobTable
from bot.services import Services
from bot.settings import Settings, load
from bot.turn import handle_request
from bot.wiring import open_services
from memory.backends.pool import Pool
from memory.backends.postgres import connection_pool
from memory.errors import StoreError, StoreQueueAway, StoreUnavailable
from memory.fallback.store import OutageStore
from memory.fallback.store_jobs import write_job
from memory.scope import own_context

EventHandler = Callable[[Services, Envelope, int, Lease], Awaitable[None]]

log = structlog.get_logger()

_GRACE_S = 7.0
_NICE = 5  # Feishu waits for acknowledgements, on the same cores, and for nothing else
_APART_S = 0.2
_TRIES = 20  # while the memory answers; those during an outage do not count
_CONNECTIONS = 3  # with the session of the queue four; more waiting turns share them

Work = Callable[[], Awaitable[None]]


async def handle_job(services: Services, lease: Lease) -> None:
    """Runs one job. Raises `Later` for failures that may pass; logs failures by kind."""
    job = lease.job
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(attempt=job.attempt)
    try:
        if job.task != EVENT_TASK:
            await room_to_begin()
        if job.task == EVENT_TASK:
            await handle_event(services, lease)
        elif job.task == TENDING_TASK:
            args = job.args
            context = own_context(args["conversation_id"], args["user_id"], args["tenant_key"])
            await handle_tending(services, context, job.attempt)
        elif job.task == STORE_TASK:
            await write_missed(services, job)
        elif handle := services.hooks.jobs.get(job.task):
            await handle(services, FeatureJob(lease, handle_request, ask_again))
    except (Later, Hopeless):
        raise
    except (StoreError, FeishuFailure, QueueUnavailable) as exc:
        if isinstance(exc, StoreError):
            metrics.MEMORY_ERRORS.labels(error=type(exc).__name__).inc()
        log.error("job.failed", error=type(exc).__name__, code=getattr(exc, "code", None))
        if passes_by_itself(exc):
            reason = f"feishu {exc.code}" if isinstance(exc, FeishuError) else type(exc).__name__
            raise Later(reason, wait_s=retry_after_s(exc)) from exc
        raise
    except Exception as exc:
        # The frames only: the message of an unforeseen exception may hold people's words.
        stack = "".join(traceback.format_tb(exc.__traceback__))
        log.error("job.failed", error=type(exc).__name__, stack=stack)
        raise


async def give_up_job(services: Services, lease: Lease, reason: str) -> bool:
    """Ends a job that gets no other attempt. Returns whether somebody was told. Raises `Later`."""
    if feature_gives_up := services.hooks.give_ups.get(lease.job.task):
        await feature_gives_up(services, lease)
    return await give_up(services, lease, reason)


async def handle_event(services: Services, lease: Lease) -> None:
    """Parses one event of Feishu, once, and hands it to those who handle its type."""
    try:
        envelope = events.parse_envelope(lease.job.args["payload"])
        handlers = (EVENT_HANDLERS, services.hooks.events)
        for handle in filter(None, (one.get(envelope.event_type) for one in handlers)):
            await handle(services, envelope, lease.job.received_ms, lease)
    except events.MalformedEvent as exc:
        log.warning("event.malformed", reason=str(exc))


async def _handle_message(
    services: Services, envelope: Envelope, received_ms: int, lease: Lease
) -> None:
    request = TurnRequest.of(events.parse_message(envelope))
    answering = await consent_to_pending(services, request)
    await handle_request(services, request, received_ms, answering=answering, lease=lease)


async def _handle_retraction(
    services: Services, envelope: Envelope, _received_ms: int, _lease: Lease
) -> None:
    await handle_retraction(services, events.parse_retraction(envelope))


async def _handle_reaction(
    services: Services, envelope: Envelope, received_ms: int, lease: Lease
) -> None:
    await handle_reaction(services, other_events.parse_reaction(envelope), received_ms, lease)


async def _handle_menu_press(
    services: Services, envelope: Envelope, received_ms: int, lease: Lease
) -> None:
    await handle_menu_press(services, other_events.parse_menu_press(envelope), received_ms, lease)


async def _handle_click(
    services: Services, envelope: Envelope, received_ms: int, lease: Lease
) -> None:
    """A click needs the memory, which stores the button. While the memory is away, messages of the
    conversation go first."""
    try:
        await handle_click(services, events.parse_card_action(envelope), received_ms, lease)
    except StoreUnavailable as exc:
        metrics.MEMORY_ERRORS.labels(error=type(exc).__name__).inc()
        log.warning("click.waits", error=type(exc).__name__, code=exc.code)
        raise Later("the memory is away", behind=True) from exc


async def _handle_chat_news(
    services: Services, envelope: Envelope, received_ms: int, _lease: Lease
) -> None:
    if services.membership:
        await services.membership.hear(other_events.parse_chat_news(envelope, received_ms))


EVENT_HANDLERS: Mapping[str, EventHandler] = {
    events.MESSAGE_RECEIVED: _handle_message,
    events.MESSAGE_RECALLED: _handle_retraction,
    events.CARD_ACTION: _handle_click,
    other_events.MENU_PRESSED: _handle_menu_press,
    **dict.fromkeys(other_events.REACTION_EVENTS, _handle_reaction),
    **dict.fromkeys(other_events.CHAT_EVENTS, _handle_chat_news),
}


class StoreRefused(Hopeless):
    """The memory is available, but will never accept this job."""

    reason = "not_taken"


async def write_missed(services: Services, job: Job) -> None:
    """Writes what the memory missed while it was away. Raises `Later` while it still is, and
    `StoreRefused` for a job that would block the others of its chat forever."""
    try:
        if isinstance(services.store, OutageStore):
            await services.store.write_job(job.args)
        else:
            await write_job(services.rpc, job.args)
    except StoreUnavailable as exc:
        untaken = job.args.get("untaken", 0) + await _answers(services)
        if untaken > _TRIES:
            raise StoreRefused(type(exc).__name__) from exc
        raise Later("the memory is away", note={"untaken": untaken}) from exc
    if "recall" in job.args or job.args.get("turn", {}).get("state") == "cancelled":
        await withdraw_cards(services)


async def _answers(services: Services) -> bool:
    """True if the memory answers now."""
    try:
        await services.store.ping()
    except StoreUnavailable:
        return False
    return True


def passes_by_itself(failure: StoreError | FeishuFailure | QueueUnavailable) -> bool:
    """True if another attempt can help: nobody answered, or the other side asked for patience."""
    if isinstance(failure, FeishuError):
        return failure.action.may_pass
    return isinstance(failure, StoreUnavailable | StoreQueueAway | Unreachable | QueueUnavailable)


def retry_after_s(failure: Exception) -> float:
    """Returns how long the other side asked us to wait, in seconds."""
    return getattr(failure, "retry_after_s", None) or 0.0


async def run(settings: Settings, url: str, stop: asyncio.Event) -> None:
    """Works until `stop` is set. Waits for a database that is away or not migrated."""
    interruptions = Interruptions()
    presence = WorkerPresence(settings)
    while not stop.is_set():
        try:
            await asyncio.to_thread(require_migrated, url)
            async with (
                connection_pool(url, size=_CONNECTIONS) as pool,
                open_services(settings, url, pool, presence.pace) as services,
            ):
                await _work(settings, url, pool, services, presence, stop, interruptions.works)
        except Exception as exc:  # noqa: BLE001 (said by `Interruptions`, whatever it is)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(interruptions.note_failure(exc)):
                    await stop.wait()


async def _work(
    settings: Settings,
    url: str,
    pool: Pool,
    services: Services,
    presence: WorkerPresence,
    stop: asyncio.Event,
    begins: Callable[[], None],
) -> None:
    table = JobTable(pool)
    services = replace(
        services,
        queue_tending=table.queue_tending,
        queue_import=table.queue_import,
        queue_connect=table.queue_connect,
        run_on_queue=table.run,
        is_stopped=table.is_stopped,
    )
    services = replace(services, tells_of_rate=partial(is_first_to_tell, table, services))
    handlers = Handlers(
        handle=partial(handle_job, services),
        give_up=partial(give_up_job, services),
        took_over=metrics.STALLED.inc,
        note_workers=presence.share_with,
        stop_turns=services.stops.ask,
    )
    places = settings.worker_concurrency + TENDING_AT_ONCE + IMPORTS_AT_ONCE
    in_hand = turn_capacity(settings.workers)
    consumer = Consumer(
        table,
        url,
        handlers,
        concurrency=places,
        in_hand=max(in_hand, places),
        grace_s=_GRACE_S,
        fallen_event=presence.worker_died,
    )
    tasks = begin_one_by_one(
        [
            presence.keep,
            partial(prepare_first_answer, services),
            partial(rehearse_turns, settings, pool),
        ],
        _tending(services, table, stop),
    )
    log.info("worker.started", concurrency=settings.worker_concurrency, in_hand=in_hand)
    begins()
    gc.collect()
    gc.freeze()  # what is loaded stays; looking through it again would hold up a turn for 60 ms
    try:
        await consumer.work(stop)
    finally:
        await cancel_tasks(tasks)
    log.info("worker.stopped")


def _tending(services: Services, table: JobTable, stop: asyncio.Event) -> list[Work]:
    """Returns what a worker does beside its jobs as long as it lives."""
    works: list[Work] = [
        *(partial(tend, services, table) for tend in services.hooks.tending),
        partial(tend_withdrawals, services),
        partial(tend_receipts, services),
        partial(tend_turn_records, table, services),
        partial(tend_person_rates, table, services),
        partial(tend_pending_replies, services, table),
        partial(tend_left_cards, services),
        partial(tend_members, services),
        partial(tend_retention, table, services),
        services.sight.keep,
    ]
    if isinstance(services.store, OutageStore):
        works.insert(0, partial(services.store.tend, stop))
    return works


def begin_one_by_one(first: Sequence[Work], then: Sequence[Work]) -> list[asyncio.Task[None]]:
    """`then` begin when the last of `first` has ended, however it did.

    One after the other they need one connection, and a rehearsal has it for half a second.
    """
    tasks = [asyncio.create_task(_after(_APART_S * n, work)) for n, work in enumerate(first)]
    later = [_after(_APART_S * n, work, tasks[-1]) for n, work in enumerate(then)]
    return tasks + [asyncio.create_task(work) for work in later]


async def _after(pause_s: float, work: Work, earlier: asyncio.Task[None] | None = None) -> None:
    if earlier:
        await asyncio.wait([earlier])
    await asyncio.sleep(pause_s)
    await work()


async def main(settings: Settings) -> None:
    """Runs one worker until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    LoopWatch(RunDirectory(settings.data_dir).folder).follow(loop)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, _hung_up)
    metrics.count_from_zero()
    metrics.serve_metrics(settings.metrics_port)
    os.nice(_NICE)
    with exit_with_sentence():
        url = database_url(settings)
    await run(settings, url, stop)


def _hung_up() -> None:
    """A terminal that closes, or somebody who hopes for new settings: neither ends a turn."""
    log.warning("worker.hung_up", next_step="start the worker anew to load code and settings")


def start() -> None:
    """Makes this process one worker, until SIGTERM or SIGINT. Exits with status 2 if it cannot be
    one."""
    os.umask(0o077)
    plan.tie_to_supervisor()
    remarks = [] if plan.is_supervised() else [*look_at_names(), *look_at_proxies()]
    with exit_with_sentence():
        settings = load()
        require_files(settings)
        require_port("METRICS_PORT", settings.metrics_port, host="127.0.0.1")
        remarks += [] if plan.is_supervised() else look_at_database(settings)
    logs.configure_logs(settings.log_level, settings.log_format)
    log_remarks(remarks)
    asyncio.run(main(settings))


if __name__ == "__main__":
    start()
