"""Answers `/reminders`, cancels a reminder at a press, and posts one when it is due."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from bot.features import timers
from bot.features.commands import learn_managers
from bot.features.documents import SourceDocumentCheck
from bot.features.feature import CommandSpec, Feature, Firing, HelpLine
from bot.features.reminders.tools import due_words, reminder_tools, say
from bot.features.timers import post_timer_card
from bot.feishu.markup import quotable
from bot.hooks import FeatureTurn, PressTurn
from bot.outbox.buttons import Reply, decision_button
from bot.outbox.delivery import Target
from bot.services import Services
from bot.text.languages import Language, join_list
from bot.text.times import next_occurrence
from memory.errors import AccessDenied
from memory.scope import MAIN_ROOT
from memory.tables.cards import NewButton, new_button_id
from memory.tables.timers import DueTimer, Timer, TimerStore

# In a list of 20, which has to fit on one card with its buttons.
_LISTED_CHARS, _NAME_CHARS = 80, 40

CANCEL_REMINDER = "reminder.cancel"
_MOST_SHOWN = 20

LATE_S = 300.0


async def show_reminders(services: Services, here: FeatureTurn) -> Reply:
    """The reminders of the chat, the next one first. Raises `StoreUnavailable`."""
    timers = await TimerStore(services.rpc).list(here.context)
    names = services.people.of(here.context.tenant_key)
    await names.look_up({one for timer in timers for one in named_in(timer)})
    list_text = reminder_list(
        timers[:_MOST_SHOWN], len(timers), names.name, services.now(), here.language
    )
    entries = range(min(len(timers), _MOST_SHOWN), 0, -1)  # counted from the last
    buttons = (_button(entry, one, here) for entry, one in zip(entries, timers, strict=False))
    return Reply(list_text, tuple(buttons))


async def press_reminder(services: Services, here: PressTurn) -> Reply:
    """Cancels the reminder of the pressed button, if who pressed may. Cancelling again after a
    crash finds nothing to cancel, and says so."""
    language, id = here.language, here.press.payload["arguments"]["reminder_id"]
    try:
        cancelled_timer = await _cancel(services, here, id)
    except AccessDenied:
        return Reply(say("not-yours", language))
    receipt = (
        cancelled_text(cancelled_timer, language)
        if cancelled_timer
        else say("gone-already", language)
    )
    remaining_list = await show_reminders(services, here)
    return replace(remaining_list, text=f"{receipt}\n\n{remaining_list.text}")


async def _cancel(services: Services, here: FeatureTurn, id: str) -> Timer | None:
    """Whether somebody manages the chat is asked of Feishu only where it matters."""
    timers = TimerStore(services.rpc)
    try:
        return await timers.cancel(here.context, id)
    except AccessDenied:
        await learn_managers(services, here.context, here.chat_type)
        return await timers.cancel(here.context, id)


def _button(entry: int, timer: Timer, here: FeatureTurn) -> NewButton:
    payload = {
        "tool": CANCEL_REMINDER,
        "arguments": {"reminder_id": timer.id},
        "description": timer.plan.content,
        "entry": entry,
    }
    return decision_button(
        say("cancel", here.language),
        payload,
        "confirm",
        group_id=new_button_id(),
        chat_type=here.chat_type,
        language=here.language,
    )


async def fire_reminder(services: Services, firing: Firing) -> str:
    """Shows it, unless it tells of a document that is closed now, and goes with it."""
    timer = firing.due.timer
    if services.access is not None:
        source_check = SourceDocumentCheck(services, timer.context)
        if await source_check.untellable([timer.turn_id]) and not await _is_due(services, timer):
            return "taken_back"

    async def card_texts(turn_id: str) -> list[str]:
        return [_due_card(services, firing.due)]

    return await post_timer_card(services, firing, _reminder_target(firing.due), card_texts)


async def _is_due(services: Services, timer: Timer) -> bool:
    return await TimerStore(services.rpc).due(timer.id, timer.plan.due_ms) is not None


def missed_count(timer: Timer, now: datetime) -> int:
    """How many of its times have passed, the one that is due not counted."""
    plan, count = timer.plan, 0
    moment = datetime.fromtimestamp(plan.due_ms / 1000, UTC)
    if plan.repeats == "once" or now - moment > timedelta(days=400):
        return 0
    while True:
        following = next_occurrence(plan.local_at, plan.repeats, ZoneInfo(plan.zone), moment)
        if following is None or following > now:
            return count
        moment, count = following, count + 1


def _due_card(services: Services, due: DueTimer) -> str:
    timer = due.timer
    now = datetime.fromtimestamp(due.now_ms / 1000, services.settings.zone)
    moment = datetime.fromtimestamp(timer.plan.due_ms / 1000, UTC)
    late = (now - moment).total_seconds() > LATE_S
    people = services.people.of(timer.context.tenant_key)
    return timers.reminder_card(
        timer,
        [people.person(one) for one in timer.plan.for_people],
        author=people.name(timer.context.actor_id),
        now=now,
        mentions_all=services.settings.allow_mention_all,
        late_since=moment if late else None,
        missed_count=missed_count(timer, now) if late else 0,
    )


def _reminder_target(due: DueTimer) -> Target:
    """The message that asked for it, or the first of its thread where a button did."""
    context = due.timer.context
    in_thread = context.chat_type != "p2p" and context.root_id != MAIN_ROOT
    root = context.root_id if context.root_id != MAIN_ROOT else ""
    return Target(due.asked_in or root, context.chat_id, in_thread)


REMINDERS = Feature(
    name="reminders",
    commands=(
        CommandSpec(
            words=("reminders", "提醒"),
            run=show_reminders,
            help=(
                HelpLine(
                    "`/reminders`: the upcoming reminders here, each with a button to cancel it",
                    "`/提醒`：查看这里的提醒，可以逐条取消",
                ),
            ),
        ),
    ),
    tools=reminder_tools(),
    presses={CANCEL_REMINDER: press_reminder},
    timers={"reminder": fire_reminder},
)


def named_in(timer: Timer) -> tuple[str, ...]:
    """The open_ids whose names its line shows."""
    return (*timer.plan.for_people, timer.context.actor_id)


def reminder_list(
    timers: Sequence[Timer],
    total: int,
    name: Callable[[str], str],
    now: datetime,
    language: Language,
) -> str:
    """Numbered, the next one first, a paragraph each; times are in the zone of `now`."""
    if not timers:
        return say("none", language)
    lines = [_list_entry(number, one, name, now, language) for number, one in enumerate(timers, 1)]
    return "\n\n".join((say("reminders", language, total=total), *lines))


def cancelled_text(timer: Timer, language: Language) -> str:
    return say("cancelled", language, text=quotable(timer.plan.content))


def _list_entry(
    number: int, timer: Timer, name: Callable[[str], str], now: datetime, language: Language
) -> str:
    plan, author = timer.plan, timer.context.actor_id
    due = datetime.fromtimestamp(plan.due_ms / 1000, now.tzinfo)
    people = join_list((name(person) for person in plan.for_people), language)
    line = say(
        "line",
        language,
        number=f"**{number}**",
        when=due_words(plan.repeats, due, now, language, counted_from=plan.local_at),
        whom=say("everybody", language) if plan.for_all else quotable(people, _NAME_CHARS),
        text=quotable(plan.content, _LISTED_CHARS),
    )
    own = plan.for_people == (author,)
    return line if own else line + say("by", language, name=quotable(name(author), _NAME_CHARS))
