"""`/digest`: what was said today or in a thread, in short, now; and when that comes by itself."""

from __future__ import annotations

from datetime import UTC, datetime

from bot.features.digests import texts
from bot.features.digests.digesting import cards
from bot.features.digests.sources import DigestSpan, gathered
from bot.features.feature import CommandTurn
from bot.features.help.group_access import with_limits
from bot.features.managers import explain_refusal, learn_managers
from bot.outbox.buttons import Reply
from bot.services import Services
from bot.text.dates.recurrence import next_after
from memory.errors import AccessDenied
from memory.scope import MAIN_ROOT
from memory.tables.digests import DigestStore
from memory.tables.timers import Plan

_EVER = datetime(2000, 1, 1, tzinfo=UTC)


async def answer_digest(services: Services, here: CommandTurn) -> Reply:
    """Now, or the schedule changed. Raises `StoreUnavailable`."""
    request, language = texts.wanted(here.command.argument), here.language
    if request.kind == "unclear":
        return Reply(texts.say("usage", language))
    if request.kind in ("schedule", "off"):
        return await _change(services, here, request)
    asked_at, root = services.asked_at(here.asked_ms), here.context.root_id
    in_thread = root not in (MAIN_ROOT, here.turn_id)
    if request.kind == "thread" or (request.kind == "here" and in_thread):
        span = DigestSpan(_EVER, asked_at, root)
    else:
        midnight = asked_at.replace(hour=0, minute=0, second=0, microsecond=0)
        span = DigestSpan(midnight, asked_at)
    material = await gathered(services, here.context, span)
    digest_cards = await cards(services, here.context, here.turn_id, material, span, language)
    if not digest_cards:
        timer = await DigestStore(services.rpc).schedule(here.context)
        follows = services.settings.sharing == "chat"
        unknown = texts.notes(material.seen, material.wordless, language, follows=follows)
        schedule = [texts.scheduled(timer, language)] if timer else []
        return Reply("\n\n".join([texts.say("nothing-said", language), *unknown, *schedule]))
    return Reply("", cards=tuple(digest_cards))


async def _change(services: Services, here: CommandTurn, request: texts.Wanted) -> Reply:
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
        confirmation = texts.was_set(plan.repeats, plan.local_at, language)
        return Reply(await with_limits(services, here.chat_type, confirmation, language))
    return Reply(texts.say("stopped" if had else "none-scheduled", language))


def plan_of(services: Services, request: texts.Wanted, language: str) -> Plan:
    """The timer of a schedule."""
    now, zone = services.now(), services.settings.zone
    local = texts.first(request, now)
    due = next_after(local, request.repeats, zone, now)
    if due is None:
        raise ValueError("what repeats comes again")
    return Plan(
        content="",
        local_at=local,
        zone=zone.key,
        due_ms=int(due.timestamp() * 1000),
        repeats=request.repeats,
        for_all=True,
        language=language,
    )
