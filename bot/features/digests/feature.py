"""Answers `/digest`, changes its schedule, and posts a scheduled digest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Literal
from zoneinfo import ZoneInfo

from bot.features.commands import explain_refusal, learn_managers
from bot.features.digests.digesting import (
    DigestSpan,
    digest_cards,
    gather_messages,
    limit_notes,
    say,
)
from bot.features.feature import CommandSpec, CommandTurn, Feature, Firing, HelpLine
from bot.features.help import with_limits
from bot.features.private_answers.feature import tell_asker_text
from bot.features.timers import post_timer_card
from bot.outbox.buttons import Reply
from bot.outbox.delivery import Target
from bot.services import Services
from bot.text.languages import Language
from bot.text.slash_commands import OFF_WORDS
from bot.text.times import last_occurrence, next_occurrence, read_time_alone, repetition_text
from memory.dates import WEEK_ZH, WEEKDAY_STEMS, read_weekday
from memory.errors import AccessDenied
from memory.scope import MAIN_ROOT
from memory.tables.timers import DigestStore, DueTimer, Repeats, Timer, TimerPlan

_THREAD = frozenset({"thread", "this thread", "话题", "本话题", "这个话题"})
_TODAY = frozenset({"today", "now", "今天", "今日", "现在"})
_PERIODS: Mapping[str, Literal["yesterday", "week", "last week"]] = {
    **dict.fromkeys(("yesterday", "昨天", "昨日"), "yesterday"),
    **dict.fromkeys(("week", "this week", "本周", "这周", "这个星期", "本星期"), "week"),
    **dict.fromkeys(("last week", "上周", "上个星期", "上星期"), "last week"),
}
_SCHEDULE = re.compile(
    r"(?:(?P<daily>daily|every ?day|每天|每日)|(?P<weekdays>weekdays|每?个?工作日)"
    rf"|(?:weekly|every|每)\s*(?P<day>{'|'.join(WEEKDAY_STEMS)})[a-z]*"
    rf"|每?{WEEK_ZH}(?P<zh>[一二三四五六日天]))"
    r"[\s,，]*(?:at\s*)?(?P<time>.+)"
)

_EVER = datetime(2000, 1, 1, tzinfo=UTC)


async def answer_digest(services: Services, here: CommandTurn) -> Reply:
    """Now, or the schedule changed. Raises `StoreUnavailable`."""
    request, language = parse_argument(here.command.argument), here.language
    if request.kind == "unclear":
        return await tell_asker_text(services, here, say("usage", language))
    if request.kind in ("schedule", "off"):
        return await _change(services, here, request)
    asked_at, root = services.asked_at(here.asked_ms), here.context.root_id
    in_thread = root not in (MAIN_ROOT, here.turn_id)
    if request.kind == "thread" or (request.kind == "here" and in_thread):
        span = DigestSpan(_EVER, asked_at, root)
    else:
        span = DigestSpan(*period_of(request, asked_at))
    material = await gather_messages(services, here.context, span)
    cards = await digest_cards(services, here.context, here.turn_id, material, span, language)
    if not cards:
        timer = await DigestStore(services.rpc).schedule(here.context)
        follows = services.settings.sharing == "chat"
        unknown = limit_notes(material.extent, material.wordless, language, follows=follows)
        schedule = [schedule_line(timer, language)] if timer else []
        return Reply("\n\n".join([say("nothing-said", language), *unknown, *schedule]))
    return Reply("", cards=tuple(cards))


async def _change(services: Services, here: CommandTurn, request: DigestRequest) -> Reply:
    """The chat's schedule, by who manages it."""
    language, context = here.language, here.context
    if not context.speaks_for_self:
        return Reply(explain_refusal(language))
    plan = plan_of(services, request, language) if request.kind == "schedule" else None
    readable = await learn_managers(services, context, here.chat_type)
    try:
        had = await DigestStore(services.rpc).set_schedule(context, here.turn_id, plan)
    except AccessDenied:
        refusal = explain_refusal(language, managers_known=readable)
        return await tell_asker_text(services, here, refusal)
    if plan:
        confirmation = schedule_set_text(plan.repeats, plan.local_at, language)
        return Reply(await with_limits(services, here.chat_type, confirmation, language))
    return Reply(say("stopped" if had else "none-scheduled", language))


def plan_of(services: Services, request: DigestRequest, language: str) -> TimerPlan:
    """The timer of a schedule."""
    now, zone = services.now(), services.settings.zone
    local = first_time(request, now)
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
    last_due = last_occurrence(plan.local_at, plan.repeats, ZoneInfo(plan.zone), due_at)
    return DigestSpan(last_due, datetime.fromtimestamp(due.now_ms / 1000, UTC))


DIGESTS = Feature(
    name="digests",
    commands=(
        CommandSpec(
            words=("digest", "摘要"),
            run=answer_digest,
            help=(
                HelpLine(
                    "`/digest`: a summary of today, or of this thread; `/digest daily 18:00` "
                    "schedules it, `/digest off` stops it",
                    "`/摘要`：总结今天或本话题的讨论；`/摘要 每天 18:00` 定时发送，"
                    "`/摘要 关闭` 停止",
                ),
            ),
        ),
    ),
    timers={"digest": fire_digest},
)


@dataclass(frozen=True, slots=True)
class DigestRequest:
    """What `/digest …` asks for. `repeats` and `at` (hour, minute) of a schedule; `weekday` counts
    from Monday, None: any day."""

    kind: Literal[
        "today", "yesterday", "week", "last week", "thread", "here", "schedule", "off", "unclear"
    ]
    repeats: Repeats = "daily"
    weekday: int | None = None
    at: tuple[int, int] = (0, 0)


def parse_argument(argument: str) -> DigestRequest:
    """From the command's argument, in lower case."""
    if argument in OFF_WORDS:
        return DigestRequest("off")
    if argument in _THREAD:
        return DigestRequest("thread")
    if not argument or argument in _TODAY:
        return DigestRequest("today" if argument else "here")
    if argument in _PERIODS:
        return DigestRequest(_PERIODS[argument])
    match = _SCHEDULE.fullmatch(argument)
    clock = read_time_alone(match["time"]) if match else None
    if not match or not clock or (clock.is_midnight and not match["daily"]):
        return DigestRequest("unclear")  # Friday at midnight: of which two nights?
    at = (clock.hour, clock.minute)
    if match["daily"] or match["weekdays"]:
        return DigestRequest("schedule", "daily" if match["daily"] else "weekdays", None, at)
    return DigestRequest("schedule", "weekly", read_weekday(match["day"] or match["zh"]), at)


def period_of(request: DigestRequest, asked_at: datetime) -> tuple[datetime, datetime]:
    """The period that a digest covers, today unless another one is asked for."""
    midnight = asked_at.replace(hour=0, minute=0, second=0, microsecond=0)
    monday = midnight - timedelta(days=midnight.weekday())
    match request.kind:
        case "yesterday":
            return midnight - timedelta(days=1), midnight
        case "week":
            return monday, asked_at
        case "last week":
            return monday - timedelta(days=7), monday
        case _:
            return midnight, asked_at


def first_time(request: DigestRequest, now: datetime) -> datetime:
    """The wall clock time, naive, from which a schedule counts: today, or that day of this week."""
    hour, minute = request.at
    today = now.replace(tzinfo=None, hour=hour, minute=minute, second=0, microsecond=0)
    if request.weekday is None:
        return today
    return today + timedelta(days=request.weekday - today.weekday())


def schedule_line(timer: Timer, language: Language) -> str:
    """“Scheduled: every day at 18:00”."""
    return say(
        "scheduled",
        language,
        when=repetition_text(timer.plan.repeats, timer.plan.local_at, language),
    )


def schedule_set_text(repeats: Repeats, local_at: datetime, language: Language) -> str:
    return say("was-set", language, when=repetition_text(repeats, local_at, language))


def schedule_words(argument: str, language: Language) -> str:
    """When a schedule comes, as the command's argument names it: “every day at 18:00”."""
    request = parse_argument(argument)
    monday = datetime(2024, 1, 1, tzinfo=UTC)
    return repetition_text(request.repeats, first_time(request, monday), language)
