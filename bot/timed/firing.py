"""The time of a timer has come: its card is stored and then shown, once, and the timer goes on.

The card is a turn of its own in the conversation in which the timer was set. Every step can be
repeated, as those of an answer can; the timer goes on only after its card was sent.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import structlog

from bot.commands.digesting import cards
from bot.commands.gathering import Gathered, Span, gathered
from bot.feishu.errors import Action, FeishuError
from bot.queue.consumer import Lease
from bot.recurrence import last_before, next_after
from bot.reply.delivery import Delivered, Target, Undeliverable, deliver
from bot.reply.finding import OutcomeUnknown, doubt_of, find_sent, sending
from bot.services import Services
from bot.telemetry import metrics
from bot.timed import texts
from bot.timed.leaving import is_gone
from memory.kept.timers import DueTimer, Timer, TimerStore
from memory.models import StoredCard
from memory.scope import MAIN_ROOT

log = structlog.get_logger()

LATE_S = 300.0


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
        from bot.timed.unasked import answer_unasked  # for chats that want it

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
    opened = await services.store.open_turn(
        timer.context,
        turn_id=timer.fired_turn,
        content=texts.as_asked(timer),
        actor_name=names.name(timer.context.actor_id),
        history_limit=1,
    )
    reply = opened.reply
    if opened.state == "open":
        texts_of = (
            [_card(services, due)]
            if timer.kind == "reminder"
            else await _digest(services, due, found)
        )
        if not texts_of:
            await services.store.mark_failed(
                timer.context, turn_id=timer.fired_turn, error="taken back"
            )
            return "taken_back"
        _, reply = await services.store.record_reply(
            timer.context, turn_id=timer.fired_turn, cards=texts_of
        )
    outcome = {"sent": "again", "cancelled": "taken_back", "failed": "failed"}.get(opened.state, "")
    since_ms = lease.job.maybe_sent_ms
    if opened.state == "pending" and lease.job.attempt == 1:
        since_ms = timer.plan.due_ms  # an earlier job stored it and was lost
    for card in (card for card in reply if card.status == "pending"):
        outcome = await _send(services, timer, card, lease, since_ms)
    return outcome or "sent"


def _span(due: DueTimer) -> Span:
    plan = due.timer.plan
    due_at = datetime.fromtimestamp(plan.due_ms / 1000, UTC)
    since = last_before(plan.local_at, plan.repeats, ZoneInfo(plan.zone), due_at)
    return Span(since, datetime.fromtimestamp(due.now_ms / 1000, UTC))


async def _digest(services: Services, due: DueTimer, found: Gathered) -> list[str]:
    timer = due.timer
    return await cards(services, timer.context, timer.fired_turn, found, _span(due))


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


async def _send(
    services: Services, timer: Timer, card: StoredCard, lease: Lease, since_ms: int
) -> str:
    """What came of it. `since_ms`: when it may first have been sent, ms since epoch; 0: not yet."""
    names = services.people.of(timer.context.tenant_key).known
    doubt = doubt_of(services, since_ms)
    target, turn_id = _target(timer), timer.fired_turn
    try:
        sent = await find_sent(
            services.feishu,
            target,
            doubt,
            turn_id=turn_id,
            chunk=card.chunk,
            content=card.content,
            names=names,
        )
        if sent is None:
            with sending(lease):
                sent = await _delivered(services, target, turn_id, card)
    except (Undeliverable, OutcomeUnknown) as exc:
        await services.store.mark_failed(timer.context, turn_id=turn_id, error=exc.reason)
        if await is_gone(services, timer.context, exc.__cause__):
            return "gone"
        log.warning("timer.undeliverable", timer_id=timer.id, reason=exc.reason)
        return "failed"
    state = await services.store.mark_sent(
        timer.context,
        turn_id=turn_id,
        chunk=card.chunk,
        content=sent.content,
        message_id=sent.message_id,
    )
    return "taken_back" if state == "cancelled" else "sent"


async def _delivered(
    services: Services, target: Target, turn_id: str, card: StoredCard
) -> Delivered:
    """Under the message that asked for it; where that is no more, in the chat by itself."""
    for place in (target, replace(target, message_id="", in_thread=False)):
        try:
            return await deliver(
                services.feishu,
                place,
                turn_id=turn_id,
                chunk=card.chunk,
                content=card.content,
                names={},
            )
        except Undeliverable as exc:
            gone = isinstance(exc.__cause__, FeishuError) and (
                exc.__cause__.action is Action.TERMINAL_MESSAGE
            )
            if not gone or not place.message_id:
                raise
    raise AssertionError("unreachable")


def _target(timer: Timer) -> Target:
    """The message that asked for it, or the first of its thread where a button did."""
    context = timer.context
    if timer.kind == "digest":
        return Target("", context.chat_id, in_thread=False)
    in_thread = context.chat_type != "p2p" and context.root_id != MAIN_ROOT
    asked = timer.turn_id.partition("~")[0]
    if not asked.startswith("om_"):
        asked = context.root_id if context.root_id != MAIN_ROOT else ""
    return Target(asked, context.chat_id, in_thread)
