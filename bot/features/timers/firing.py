"""Fires a due timer: runs the function of its kind once and sets the timer's next time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import structlog

from bot.answering.request_handler import RequestHandler
from bot.features.feature import Firing, TimerFunction
from bot.process import metrics
from bot.queue.consumer import Lease
from bot.services import Services
from bot.text.dates.recurrence import next_after
from memory.tables.timers import DueTimer, Kind, Timer, TimerStore

log = structlog.get_logger()


async def handle_timer(
    services: Services,
    lease: Lease,
    functions: Mapping[Kind, TimerFunction],
    handle_request: RequestHandler,
) -> None:
    """Does one timer job. Raises the errors that are worth another attempt."""
    args = lease.job.args
    due = await TimerStore(services.rpc).due(args["timer_id"], args["due_ms"])
    if due is None:
        log.info("timer.not_due", timer_id=args["timer_id"])
        return
    timer = due.timer
    structlog.contextvars.bind_contextvars(conversation_id=timer.context.conversation_id)
    outcome = await functions[timer.kind](services, Firing(due, lease, handle_request))
    await _go_on(services, due, outcome)


async def _go_on(services: Services, due: DueTimer, outcome: str) -> None:
    """Sets the timer's next time. Call it only after the card was sent."""
    timer, timers = due.timer, TimerStore(services.rpc)
    now = datetime.fromtimestamp(due.now_ms / 1000, UTC)
    following = next_time(timer, now)
    await timers.fired(timer, int(following.timestamp() * 1000) if following else None)
    late_s = (due.now_ms - timer.plan.due_ms) / 1000
    metrics.TIMERS.labels(kind=timer.kind, outcome=outcome).inc()
    metrics.TIMER_LATE_SECONDS.observe(late_s)
    log.info("timer", timer_id=timer.id, outcome=outcome, late_s=round(late_s, 1))


def next_time(timer: Timer, now: datetime) -> datetime | None:
    """When the timer fires next: after now, so times missed until now are skipped."""
    plan = timer.plan
    after = max(now, datetime.fromtimestamp(plan.due_ms / 1000, UTC))
    if plan.repeats == "once":
        return None
    return next_after(plan.local_at, plan.repeats, ZoneInfo(plan.zone), after)
