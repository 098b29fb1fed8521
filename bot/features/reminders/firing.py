"""The time of a reminder has come."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from bot.answering.documents_behind import DocumentsBehind
from bot.features.feature import Firing
from bot.features.timers import texts
from bot.features.timers.posting import post
from bot.outbox.delivery import Target
from bot.services import Services
from bot.text.dates.recurrence import next_after
from memory.scope import MAIN_ROOT
from memory.tables.timers import DueTimer, Timer, TimerStore

LATE_S = 300.0


async def fire_reminder(services: Services, firing: Firing) -> str:
    """Shows it, unless it tells of a document that is closed now, and goes with it."""
    timer = firing.due.timer
    if services.access is not None:
        behind = DocumentsBehind(services, timer.context)
        if await behind.untellable([timer.turn_id]) and not await _is_due(services, timer):
            return "taken_back"

    async def written(turn_id: str) -> list[str]:
        return [_card(services, firing.due)]

    return await post(services, firing, _target(firing.due), written)


async def _is_due(services: Services, timer: Timer) -> bool:
    return await TimerStore(services.rpc).due(timer.id, timer.plan.due_ms) is not None


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


def _card(services: Services, due: DueTimer) -> str:
    timer = due.timer
    now = datetime.fromtimestamp(due.now_ms / 1000, services.settings.zone)
    moment = datetime.fromtimestamp(timer.plan.due_ms / 1000, UTC)
    late = (now - moment).total_seconds() > LATE_S
    people = services.people.of(timer.context.tenant_key)
    return texts.card(
        timer,
        [people.person(one) for one in timer.plan.for_people],
        author=people.name(timer.context.actor_id),
        now=now,
        mentions_all=services.settings.allow_mention_all,
        late_since=moment if late else None,
        missed_count=missed(timer, now) if late else 0,
    )


def _target(due: DueTimer) -> Target:
    """The message that asked for it, or the first of its thread where a button did."""
    context = due.timer.context
    in_thread = context.chat_type != "p2p" and context.root_id != MAIN_ROOT
    root = context.root_id if context.root_id != MAIN_ROOT else ""
    return Target(due.asked_in or root, context.chat_id, in_thread)
