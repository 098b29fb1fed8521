"""The time of a digest has come. A time in which nothing was said has no card."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from zoneinfo import ZoneInfo

from bot.features.digests.digesting import cards
from bot.features.digests.sources import DigestSpan, gathered
from bot.features.feature import Firing
from bot.features.timers.posting import post
from bot.outbox.delivery import Target
from bot.services import Services
from bot.text.dates.recurrence import last_before
from memory.tables.timers import DueTimer


async def fire_digest(services: Services, firing: Firing) -> str:
    context, span = firing.due.timer.context, _span(firing.due)
    material = await gathered(services, context, span)
    if not material.said:
        return "empty"
    write = partial(cards, services, context, material=material, span=span)
    return await post(services, firing, Target("", context.chat_id, in_thread=False), write)


def _span(due: DueTimer) -> DigestSpan:
    plan = due.timer.plan
    due_at = datetime.fromtimestamp(plan.due_ms / 1000, UTC)
    since = last_before(plan.local_at, plan.repeats, ZoneInfo(plan.zone), due_at)
    return DigestSpan(since, datetime.fromtimestamp(due.now_ms / 1000, UTC))
