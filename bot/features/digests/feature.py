"""Answers `/digest`, changes its schedule, and posts a scheduled digest."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from zoneinfo import ZoneInfo

from bot.features.commands import explain_refusal, learn_managers
from bot.features.digests import texts
from bot.features.digests.digesting import DigestSpan, digest_cards, gather_messages
from bot.features.feature import CommandTurn, Feature, Firing
from bot.features.help import with_limits
from bot.features.timers import post_timer_card
from bot.outbox.buttons import Reply
from bot.outbox.delivery import Target
from bot.services import Services
from bot.text.slash_commands import CommandName
from bot.text.times import last_occurrence, next_occurrence
from memory.errors import AccessDenied
from memory.scope import MAIN_ROOT
from memory.tables.timers import DigestStore, DueTimer, TimerPlan

_EVER = datetime(2000, 1, 1, tzinfo=UTC)


async def answer_digest(services: Services, here: CommandTurn) -> Reply:
    """Now, or the schedule changed. Raises `StoreUnavailable`."""
    request, language = texts.parse_argument(here.command.argument), here.language
    if request.kind == "unclear":
        return Reply(texts.say("usage", language))
    if request.kind in ("schedule", "off"):
        return await _change(services, here, request)
    asked_at, root = services.asked_at(here.asked_ms), here.context.root_id
    in_thread = root not in (MAIN_ROOT, here.turn_id)
    if request.kind == "thread" or (request.kind == "here" and in_thread):
        span = DigestSpan(_EVER, asked_at, root)
    else:
        span = DigestSpan(*texts.period_of(request, asked_at))
    material = await gather_messages(services, here.context, span)
    cards = await digest_cards(services, here.context, here.turn_id, material, span, language)
    if not cards:
        timer = await DigestStore(services.rpc).schedule(here.context)
        follows = services.settings.sharing == "chat"
        unknown = texts.limit_notes(material.extent, material.wordless, language, follows=follows)
        schedule = [texts.schedule_line(timer, language)] if timer else []
        return Reply("\n\n".join([texts.say("nothing-said", language), *unknown, *schedule]))
    return Reply("", cards=tuple(cards))


async def _change(services: Services, here: CommandTurn, request: texts.DigestRequest) -> Reply:
    """The chat's schedule, by who manages it."""
    language, context = here.language, here.context
    if not context.speaks_for_self:
        return Reply(explain_refusal(language))
    plan = plan_of(services, request, language) if request.kind == "schedule" else None
    readable = await learn_managers(services, context, here.chat_type)
    try:
        had = await DigestStore(services.rpc).set_schedule(context, here.turn_id, plan)
    except AccessDenied:
        return Reply(explain_refusal(language, managers_known=readable))
    if plan:
        confirmation = texts.schedule_set_text(plan.repeats, plan.local_at, language)
        return Reply(await with_limits(services, here.chat_type, confirmation, language))
    return Reply(texts.say("stopped" if had else "none-scheduled", language))


def plan_of(services: Services, request: texts.DigestRequest, language: str) -> TimerPlan:
    """The timer of a schedule."""
    now, zone = services.now(), services.settings.zone
    local = texts.first_time(request, now)
    due = next_occurrence(local, request.repeats, zone, now)
    if due is None:
        raise ValueError("what repeats comes again")
    return TimerPlan(
        content="",
        local_at=local,
        zone=zone.key,
        due_ms=int(due.timestamp() * 1000),
        repeats=request.repeats,
        for_all=True,
        language=language,
    )


async def fire_digest(services: Services, firing: Firing) -> str:
    context, span = firing.due.timer.context, _scheduled_span(firing.due)
    material = await gather_messages(services, context, span)
    if not material.messages:
        return "empty"
    write = partial(digest_cards, services, context, material=material, span=span)
    return await post_timer_card(
        services, firing, Target("", context.chat_id, in_thread=False), write
    )


def _scheduled_span(due: DueTimer) -> DigestSpan:
    plan = due.timer.plan
    due_at = datetime.fromtimestamp(plan.due_ms / 1000, UTC)
    since = last_occurrence(plan.local_at, plan.repeats, ZoneInfo(plan.zone), due_at)
    return DigestSpan(since, datetime.fromtimestamp(due.now_ms / 1000, UTC))


DIGESTS = Feature(
    name="digests",
    commands={CommandName.DIGEST: answer_digest},
    timers={"digest": fire_digest},
)
