"""The time of a timer has come: its card is stored and then shown, once, and the timer goes on.

The card is a turn of its own in the conversation in which the timer was set. Every step can be
repeated, as those of an answer can; the timer goes on only after its card was sent.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import structlog

from bot.features.digests.digesting import cards
from bot.features.digests.sources import Gathered, Span, gathered
from bot.features.timers import texts
from bot.features.timers.left_chats import is_gone
from bot.outbox.delivery import Target
from bot.outbox.sending import Outgoing, leave_unsent, send
from bot.queue.consumer import Lease
from bot.services import Services
from bot.telemetry import metrics
from bot.text.dates.recurrence import last_before, next_after
from memory.kept.timers import DueTimer, Timer, TimerStore
from memory.models import StoredCard
from memory.scope import MAIN_ROOT

log = structlog.get_logger()

LATE_S = 300.0
_OVER = {"sent": "again", "cancelled": "taken_back", "failed": "failed"}


async def handle_timer(services: Services, lease: Lease) -> None:
    """One job. Raises what is worth another attempt."""
    args, timers = lease.job.args, TimerStore(services.rpc)
    due = await timers.due(args["timer_id"], args["due_ms"])
    if due is None:
        log.info("timer.not_due", timer_id=args["timer_id"])
        return
    timer = due.timer
    structlog.contextvars.bind_contextvars(conversation_id=timer.context.conversation_id)
    if timer.kind == "proactive":
        from bot.features.unasked.answers import answer_unasked  # for chats that want it

        await _over(services, due, await answer_unasked(services, due, lease))
        return
    found = Gathered(())
    if timer.kind == "digest":
        found = await gathered(services, timer.context, _span(due))
    silent = timer.kind == "digest" and not found.said
    outcome = "empty" if silent else await _show(services, due, found, lease)
    await _over(services, due, outcome)


async def _over(services: Services, due: DueTimer, outcome: str) -> None:
    """The timer goes on."""
    timer, timers = due.timer, TimerStore(services.rpc)
    now = datetime.fromtimestamp(due.now_ms / 1000, UTC)
    following = next_time(timer, now)
    await timers.fired(timer, int(following.timestamp() * 1000) if following else None)
    late_s = (due.now_ms - timer.plan.due_ms) / 1000
    metrics.TIMERS.labels(kind=timer.kind, outcome=outcome).inc()
    metrics.TIMER_LATE_SECONDS.observe(late_s)
    log.info("timer", timer_id=timer.id, outcome=outcome, late_s=round(late_s, 1))


def next_time(timer: Timer, now: datetime) -> datetime | None:
    """When it comes again: later than now, whatever was missed meanwhile."""
    plan = timer.plan
    after = max(now, datetime.fromtimestamp(plan.due_ms / 1000, UTC))
    if plan.repeats == "once":
        return None
    return next_after(plan.local_at, plan.repeats, ZoneInfo(plan.zone), after)


def missed(timer: Timer, now: datetime) -> int:
    """How many of its times have passed, the one that is due not counted."""
    plan, count = timer.plan, 0
    moment = datetime.fromtimestamp(plan.due_ms / 1000, UTC)
    if plan.repeats == "once" or now - moment > timedelta(days=400):
        return 0
    while True:
        following = next_after(plan.local_at, plan.repeats, ZoneInfo(plan.zone), moment)
        if following is None or following > now:
            return count
        moment, count = following, count + 1


async def _show(services: Services, due: DueTimer, found: Gathered, lease: Lease) -> str:
    timer = due.timer
    names = services.people.of(timer.context.tenant_key)
    await names.look_up([*timer.plan.for_people, timer.context.actor_id])
    origin = due.origin()
    opened = await services.store.open_turn(
        timer.context,
        turn_id=origin.turn_id,
        content=texts.as_asked(timer),
        actor_name=names.name(timer.context.actor_id),
        history_limit=1,
        origin=origin,
    )
    turn_id = opened.turn_id or origin.turn_id
    reply = opened.reply
    if opened.state == "open":
        texts_of = (
            [_card(services, due)]
            if timer.kind == "reminder"
            else await _digest(services, due, turn_id, found)
        )
        if not texts_of:
            await leave_unsent(services, timer.context, turn_id, "taken back")
            return "taken_back"
        _, reply = await services.store.record_reply(timer.context, turn_id=turn_id, cards=texts_of)
    if opened.state in _OVER:
        return _OVER[opened.state]
    since_ms = lease.job.maybe_sent_ms
    if opened.state == "pending" and lease.job.attempt == 1:
        since_ms = timer.plan.due_ms  # an earlier job stored it and was lost
    return await _send(services, due, _outgoing(services, due, turn_id, reply, since_ms), lease)


def _span(due: DueTimer) -> Span:
    plan = due.timer.plan
    due_at = datetime.fromtimestamp(plan.due_ms / 1000, UTC)
    since = last_before(plan.local_at, plan.repeats, ZoneInfo(plan.zone), due_at)
    return Span(since, datetime.fromtimestamp(due.now_ms / 1000, UTC))


async def _digest(services: Services, due: DueTimer, turn_id: str, found: Gathered) -> list[str]:
    return await cards(services, due.timer.context, turn_id, found, _span(due))


def _card(services: Services, due: DueTimer) -> str:
    timer = due.timer
    now = datetime.fromtimestamp(due.now_ms / 1000, UTC)
    moment = datetime.fromtimestamp(timer.plan.due_ms / 1000, UTC)
    late = (now - moment).total_seconds() > LATE_S
    people = services.people.of(timer.context.tenant_key)
    return texts.card(
        timer,
        [people.person(one) for one in timer.plan.for_people],
        author=people.name(timer.context.actor_id),
        late_since=moment.astimezone(services.settings.zone) if late else None,
        missed=missed(timer, now) if late else 0,
    )


async def _send(services: Services, due: DueTimer, out: Outgoing, lease: Lease) -> str:
    """What came of it."""
    outcome = await send(services, out, lease=lease, ends_unknown=True)
    if outcome.state == "cancelled":
        return "taken_back"
    if outcome.state == "failed":
        if await is_gone(services, out.context, outcome.refusal):
            return "gone"
        log.warning("timer.undeliverable", timer_id=due.timer.id, reason=outcome.reason)
    return outcome.state


def _outgoing(
    services: Services,
    due: DueTimer,
    turn_id: str,
    reply: tuple[StoredCard, ...],
    since_ms: int,
) -> Outgoing:
    """To the message that asked for it; where that is no more, to the chat by itself."""
    context, target = due.timer.context, _target(due)
    chat = replace(target, message_id="", in_thread=False) if target.message_id else None
    names = services.people.of(context.tenant_key).known
    return Outgoing(context, turn_id, reply, target, names, instead=chat, since_ms=since_ms)


def _target(due: DueTimer) -> Target:
    """The message that asked for it, or the first of its thread where a button did."""
    context = due.timer.context
    if due.timer.kind == "digest":
        return Target("", context.chat_id, in_thread=False)
    in_thread = context.chat_type != "p2p" and context.root_id != MAIN_ROOT
    root = context.root_id if context.root_id != MAIN_ROOT else ""
    return Target(due.asked_in or root, context.chat_id, in_thread)
