"""Queues due timers, runs the function of each kind once, and posts the card of a timer once.

One worker takes a due timer; if it dies before the job is queued, another takes it a few minutes
later. The card is a turn of its own in the conversation in which the timer was set, and every step
can be repeated."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import structlog

from bot.answering.reply import RequestHandler
from bot.features.feature import Firing, TimerFunction
from bot.feishu import markup
from bot.feishu.errors import OUT_OF_CHAT, FeishuError
from bot.outbox.delivery import AT_ALL, Target
from bot.outbox.sending import Outgoing, leave_unsent, send
from bot.process import metrics
from bot.queue.consumer import Lease
from bot.queue.inbox import QueueUnavailable
from bot.queue.table import JobTable
from bot.services import Services
from bot.text import times
from bot.text.languages import Catalogue, Language
from bot.text.roster import Person
from bot.text.times import next_occurrence
from memory.errors import StoreError, StoreUnavailable
from memory.models import StoredCard
from memory.scope import AgentMemoryContext
from memory.tables.directory import ChatStore
from memory.tables.timers import DueTimer, Timer, TimerKind, TimerStore

log = structlog.get_logger()
_EVERY_S = 3.0
_AFTER_TROUBLE_S = 30.0
_AT_ONCE = 50

_OVER = {"sent": "again", "cancelled": "taken_back", "failed": "failed"}

say = Catalogue(__file__).say


async def tend_timers(services: Services, table: JobTable) -> None:
    """Every few seconds, for as long as the worker works."""
    while True:
        could = await queue_due(services, table)
        await asyncio.sleep(_EVERY_S if could else _AFTER_TROUBLE_S)


async def queue_due(services: Services, table: JobTable) -> bool:
    """Queues what is due; whether that could be done. Never raises."""
    try:
        while due := await TimerStore(services.rpc).take_due(_AT_ONCE):
            for one in due:
                await table.queue_timer(one, int(services.clock() * 1000))
    except (StoreUnavailable, QueueUnavailable) as exc:
        log.warning("timers.away", error=type(exc).__name__)
        return False
    except StoreError as exc:
        log.error("timers.refused", error=type(exc).__name__, code=exc.code)
        return False
    return True


async def handle_timer(
    services: Services,
    lease: Lease,
    functions: Mapping[TimerKind, TimerFunction],
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
    await _set_next_time(services, due, outcome)


async def _set_next_time(services: Services, due: DueTimer, outcome: str) -> None:
    """Sets the timer's next time. Call it only after the card was sent."""
    timer, timers = due.timer, TimerStore(services.rpc)
    now = datetime.fromtimestamp(due.now_ms / 1000, UTC)
    following = next_time(timer, now)
    await timers.mark_fired(timer, int(following.timestamp() * 1000) if following else None)
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
    return next_occurrence(plan.local_at, plan.repeats, ZoneInfo(plan.zone), after)


async def post_timer_card(
    services: Services,
    firing: Firing,
    target: Target,
    write: Callable[[str], Awaitable[list[str]]],
) -> str:
    """Shows what `write` gives for the turn's id, and returns what came of it. Where it gives
    nothing, what it is made of was taken back."""
    due = firing.due
    timer, origin = due.timer, due.origin()
    names = services.people.of(timer.context.tenant_key)
    await names.look_up([*timer.plan.for_people, timer.context.actor_id])
    open_turn = await services.store.begin_turn(
        timer.context,
        turn_id=origin.turn_id,
        content=question_text(timer),
        actor_name=names.name(timer.context.actor_id),
        history_limit=1,
        origin=origin,
    )
    turn_id, reply = open_turn.turn_id or origin.turn_id, open_turn.reply
    if open_turn.state == "open":
        cards = await write(turn_id)
        if not cards:
            await leave_unsent(services, timer.context, turn_id, "taken back")
            return "taken_back"
        _, reply = await services.store.record_reply(timer.context, turn_id=turn_id, cards=cards)
    if open_turn.state in _OVER:
        return _OVER[open_turn.state]
    since_ms = firing.lease.job.maybe_sent_ms
    if open_turn.state == "pending" and firing.lease.job.attempt == 1:
        since_ms = timer.plan.due_ms  # an earlier job stored it and was lost
    out = _outgoing(services, firing, turn_id, reply, target, since_ms)
    return await _send_timer_card(services, firing, out)


async def _send_timer_card(services: Services, firing: Firing, out: Outgoing) -> str:
    """What came of it."""
    outcome = await send(services, out, lease=firing.lease, ends_unknown=True)
    if outcome.state == "cancelled":
        return "taken_back"
    if outcome.state == "failed":
        if await is_out_of_chat(services, out.context, outcome.refusal):
            return "gone"
        timer_id = firing.due.timer.id
        log.warning("timer.undeliverable", timer_id=timer_id, reason=outcome.reason)
    return outcome.state


def _outgoing(
    services: Services,
    firing: Firing,
    turn_id: str,
    reply: tuple[StoredCard, ...],
    target: Target,
    since_ms: int,
) -> Outgoing:
    """To the message that asked for it; where that is no more, to the chat by itself."""
    context = firing.due.timer.context
    chat = replace(target, message_id="", in_thread=False) if target.message_id else None
    names = services.people.of(context.tenant_key).known
    return Outgoing(context, turn_id, reply, target, names, instead=chat, since_ms=since_ms)


async def is_out_of_chat(
    services: Services, context: AgentMemoryContext, refusal: BaseException | None
) -> bool:
    """Whether Feishu refused because the bot is out of the chat; then its timers stop, unless later
    news says that the bot is back. Raises `StoreError`."""
    if not isinstance(refusal, FeishuError) or refusal.code not in OUT_OF_CHAT:
        return False
    has_left = await ChatStore(services.rpc).leave(
        context.tenant_key, context.chat_id, at_ms=int(services.clock() * 1000)
    )
    if has_left:
        log.info("chat.gone", chat_id=context.chat_id, code=refusal.code)
    return has_left


def question_text(timer: Timer) -> str:
    """What stands in the history as the question to which the card is the answer."""
    if timer.kind == "digest":
        return say("digest-due", timer_language(timer))
    return say("reminder-due", timer_language(timer), text=timer.plan.content)


def reminder_card(
    timer: Timer,
    people: Sequence[Person],
    *,
    author: str,
    now: datetime,
    mentions_all: bool = False,
    late_since: datetime | None = None,
    missed_count: int = 0,
) -> str:
    """The markdown of the card. In a group it addresses those it is for; `author` is named to those
    who did not set it themselves. Times are in the zone of `now`."""
    tongue, context = timer_language(timer), timer.context
    tags = [tag for one in people if (tag := one.at_tag)] if context.chat_type != "p2p" else []
    if mentions_all and timer.plan.for_all and context.chat_type != "p2p":
        tags = [AT_ALL]
    text = say("reminder", tongue, text=markup.card_markdown(timer.plan.content))
    if context.chat_type != "p2p" and list(timer.plan.for_people) != [context.actor_id]:
        text += say("by", tongue, name=markup.escape(author))
    lines = [" ".join([*tags, text])]
    if late_since:
        due = times.moment_text(late_since.astimezone(now.tzinfo), tongue, now=now)
        lines.append(
            say("late-and-missed" if missed_count else "late", tongue, when=due, n=missed_count)
        )
    return "\n\n".join(lines)


def timer_language(timer: Timer) -> Language:
    return "zh" if timer.plan.language == "zh" else "en"
