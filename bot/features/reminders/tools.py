"""Offers the tools that set, list, change and cancel reminders, and words their outcomes for the
model.

A reminder is posted in the conversation in which it was set."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from bot.agenda.turn_agenda import TurnAgenda
from bot.agents.running_turns import note_sources
from bot.agents.tool_types import Fields, Tool, ToolFailed, ToolOutcome, Wording, tool
from bot.agents.tools.deps import ToolDeps
from bot.features.reminders.planning import addressees, content_of, due_moment, skipped_remark
from bot.feishu.markup import quotable
from bot.text import times
from bot.text.languages import Catalogue, Language, join_list, language_of
from bot.text.roster import Person, Roster, bare_name, means_asker, means_everybody
from bot.text.times import coming_text
from memory.errors import AccessDenied
from memory.tables.timers import (
    MOST_OF_A_CHAT,
    MOST_OF_A_PERSON,
    Repeats,
    Timer,
    TimerPlan,
    TimerStore,
    TooManyTimers,
)

_CATALOGUE = Catalogue(__file__)
say = _CATALOGUE.say
_ASKING_WHEN = (
    "time-far", "no-time-of-day", "no-such-time", "time-several", "time-halves",
    "time-zone", "time-lunar",
    "nothing-to-remind",
)  # fmt: skip
_TOO_MANY = {
    "person": ("The person has {most} reminders here", "too-many-of-person", MOST_OF_A_PERSON),
    "chat": ("This chat has {most} reminders", "too-many-of-chat", MOST_OF_A_CHAT),
}

Names = Mapping[str, str]


def reminder_tools() -> list[Tool]:
    functions: tuple[tuple[Any, bool], ...] = (
        (set_reminder, False),
        (list_reminders, True),
        (change_reminder, False),
        (cancel_reminder, False),
    )
    return [
        tool(function, sequential=True, reads=reads, wording=WORDING)
        for function, reads in functions
    ]


async def set_reminder(
    deps: ToolDeps,
    text: str,
    at: str,
    repeats: Repeats = "once",
    for_whom: list[str] | None = None,
) -> ToolOutcome:
    """Post a reminder in this conversation at a time (提醒我……). Ask back when day or time is
    missing or cannot be.

    Args:
        text: What to remind of, in the person's language, without when and whom.
        at: Local time, counted from "Now", such as 2026-11-23T15:00; of what repeats, the first.
        repeats: How often.
        for_whom: "me" (also when left out), "us" for the whole chat, or names.
    """
    now, context = deps.prompt.now, deps.context
    local, due_ms, repeats = due_moment(at, repeats, now, deps.prompt.asked_at)
    roster = await _known_people(deps, for_whom or ())
    people, for_all = addressees(
        for_whom, roster, context.actor_id, in_p2p=context.chat_type == "p2p"
    )
    plan = TimerPlan(
        content=content_of(text),
        local_at=local,
        zone=str(now.tzinfo),
        due_ms=due_ms,
        repeats=repeats,
        for_people=people,
        for_all=for_all,
        language=deps.prompt.language or language_of([deps.prompt.question, text]),
    )
    try:
        timer = await _timers(deps).set(context, deps.prompt.turn_id, plan)
    except TooManyTimers as exc:
        limit, kind, most = _TOO_MANY[exc.whose]
        raise ToolFailed(
            f"{limit.format(most=most)} already, as many as may be. Nothing was set. One has to "
            "be cancelled first.",
            kind,
            most=most,
        ) from exc
    return set_outcome(timer, roster.names(), now, skipped_remark(local, now))


async def list_reminders(deps: ToolDeps) -> ToolOutcome:
    """List the reminders of this chat that are to come."""
    timers = await _timers(deps).list(deps.context)
    note_sources(timer.turn_id for timer in timers)
    people = await _known_people(deps, [one for timer in timers for one in timer.plan.for_people])
    return listed_outcome(timers, people.names(), deps.prompt.now)


async def change_reminder(
    deps: ToolDeps,
    reminder_id: str,
    text: str | None = None,
    at: str | None = None,
    repeats: Repeats | None = None,
    for_whom: list[str] | None = None,
) -> ToolOutcome:
    """Change a reminder of the person who asks. What is not given stays.

    Args:
        reminder_id: Its ID (tm_…), from list_reminders or an earlier result.
        text: As in set_reminder.
        at: The new local time.
        repeats: How often.
        for_whom: "me", "us", or names.
    """
    timer = await _find_reminder(deps, reminder_id)
    now, old = deps.prompt.now, timer.plan
    often = repeats or old.repeats
    when = at or f"{old.local_at:%Y-%m-%dT%H:%M}"
    if timer.context.actor_id != deps.context.actor_id:
        raise ToolFailed(
            "Only who set a reminder can change it. Nothing was changed. Say so.",
            "not-yours-to-change",
        )
    local, due_ms, often = due_moment(when, often, now, deps.prompt.asked_at)
    plan = replace(
        old,
        content=old.content if text is None else content_of(text),
        local_at=local,
        zone=str(now.tzinfo),
        due_ms=due_ms,
        repeats=often,
    )
    roster = await _known_people(deps, [*(for_whom or ()), *plan.for_people])
    if for_whom:
        people, for_all = addressees(
            for_whom,
            roster,
            deps.context.actor_id,
            in_p2p=deps.context.chat_type == "p2p",
        )
        plan = replace(plan, for_people=people, for_all=for_all)
    changed_timer = await _timers(deps).change(deps.context, timer.id, plan, deps.prompt.turn_id)
    if changed_timer is None:
        raise _no_such(reminder_id)
    return changed_outcome(changed_timer, roster.names(), now, skipped_remark(local, now))


async def cancel_reminder(deps: ToolDeps, reminder_id: str) -> ToolOutcome:
    """Cancel a reminder: who set it can, and whom it is for.

    Args:
        reminder_id: Its ID (tm_…).
    """
    try:
        timer = await _timers(deps).cancel(deps.context, reminder_id)
    except AccessDenied as exc:
        raise ToolFailed(
            "Only who set a reminder, whom it is for, or who manages the chat can cancel it. "
            "Nothing was changed. Say so.",
            "not-yours-to-cancel",
        ) from exc
    if timer is None:
        raise _no_such(reminder_id)
    return cancelled_outcome(timer, deps.prompt.people.names(), deps.prompt.now)


async def _known_people(deps: ToolDeps, open_ids: Collection[str]) -> Roster:
    """The people of the conversation; the other members of the group too, where somebody is
    `wanted`, by name or open_id, who has not said anything there."""
    people = deps.prompt.people
    names = [bare_name(one) for one in open_ids if not (means_asker(one) or means_everybody(one))]
    is_known = all(name in people.names() or people.people_named(name) for name in names)
    agenda: TurnAgenda | None = deps.opened_sources.get("calendar")
    if is_known or agenda is None or deps.context.chat_type == "p2p":
        return people
    members = await agenda.members()
    return people.including(*(Person(one.open_id, one.name) for one in members))


async def _find_reminder(deps: ToolDeps, reminder_id: str) -> Timer:
    for timer in await _timers(deps).list(deps.context):
        if timer.id == reminder_id:
            note_sources([timer.turn_id])
            return timer
    raise _no_such(reminder_id)


def _timers(deps: ToolDeps) -> TimerStore:
    if deps.timers is None:
        raise ToolFailed(
            "Reminders cannot be kept here. Nothing was done. Say so.", "no-reminders-kept"
        )
    return deps.timers


def _no_such(reminder_id: str) -> ToolFailed:
    return ToolFailed(
        f"No reminder {reminder_id[:40]!r} is still to come here. Nothing was changed. Use "
        "list_reminders to find the right ID.",
        "no-such-reminder",
    )


"""open_id → name, of who is known here."""


def set_outcome(timer: Timer, names: Names, now: datetime, skips: str) -> ToolOutcome:
    """`skips`: what to say when the clock leaves the time out; "" otherwise."""
    fields = {**_fields(timer, names, now), "skips": bool(skips)}
    result = f"Successfully set reminder {_describe_timer(timer, names)}{skips}"
    return ToolOutcome(result, "reminder-set", fields)


def changed_outcome(timer: Timer, names: Names, now: datetime, skips: str) -> ToolOutcome:
    """`skips`: as in `set_outcome`."""
    fields = {**_fields(timer, names, now), "skips": bool(skips)}
    result = f"Successfully changed reminder {_describe_timer(timer, names)}{skips}"
    return ToolOutcome(result, "reminder-changed", fields)


def cancelled_outcome(timer: Timer, names: Names, now: datetime) -> ToolOutcome:
    result = f"Successfully cancelled reminder {_describe_timer(timer, names)}"
    return ToolOutcome(result, "reminder-cancelled", _fields(timer, names, now))


def listed_outcome(timers: Sequence[Timer], names: Names, now: datetime) -> ToolOutcome:
    if not timers:
        return ToolOutcome("There are no reminders here.", "no-reminders")
    lines = [f"{number}. {_describe_timer(one, names)}" for number, one in enumerate(timers, 1)]
    return ToolOutcome(
        "\n".join((f"{len(lines)} to come:", *lines)),
        "reminders-listed",
        {"reminders": [_fields(one, names, now) for one in timers]},
    )


def _describe_timer(timer: Timer, names: Names) -> str:
    """“(ID: tm_…) on 2026-11-23 15:00 Monday, daily, for Alice: text”."""
    plan = timer.plan
    people = ", ".join(name or "another person" for name in _people(plan, names))
    whom = "everybody here" if plan.for_all else people
    often = "" if plan.repeats == "once" else f", {plan.repeats}"
    often += f" on day {plan.local_at.day}" if plan.repeats == "monthly" else ""
    return f"(ID: {timer.id}) on {_due(plan):%Y-%m-%d %H:%M %A}{often}, for {whom}: {plan.content}"


def _fields(timer: Timer, names: Names, now: datetime) -> dict[str, Any]:
    """`people` are names, "" for who is not known here; `for_author`: it is for nobody else."""
    plan = timer.plan
    return {
        "id": timer.id,
        "at": f"{_due(plan):%Y-%m-%dT%H:%M}",
        "counted_from": f"{plan.local_at:%Y-%m-%dT%H:%M}",
        "repeats": plan.repeats,
        "now": f"{now:%Y-%m-%dT%H:%M}",
        "for_all": plan.for_all,
        "for_author": plan.for_people == (timer.context.actor_id,),
        "people": _people(plan, names),
        "text": plan.content,
    }


def _people(plan: TimerPlan, names: Names) -> list[str]:
    return [names.get(one, "") for one in plan.for_people]


def _due(plan: TimerPlan) -> datetime:
    return datetime.fromtimestamp(plan.due_ms / 1000, ZoneInfo(plan.zone))


def due_words(
    repeats: Repeats,
    due: datetime,
    now: datetime,
    language: Language,
    *,
    counted_from: datetime | None = None,
    is_set: bool = False,
) -> str:
    """“Mon 30 Nov at 09:00”, or “every Monday at 09:00 (next: 30 Nov)”; “first” where it `is_set`
    just now. What repeats is named by the time that it is `counted_from`: the 31st, though it is
    due on the 30th."""
    if repeats == "once":
        return times.coming_text(due, language, now=now)
    often, day = (
        times.repetition_text(repeats, counted_from or due, language),
        times.day_text(due, language, now=now),
    )
    return say("repeated-from" if is_set else "repeated", language, often=often, day=day)


def _set_text(reminder: Fields, language: Language) -> str:
    sentence = say("reminder-set", language, promise=_promise(reminder, language))
    return _with_skip(sentence, reminder, language)


def _changed_text(reminder: Fields, language: Language) -> str:
    sentence = say("reminder-changed", language, promise=_promise(reminder, language))
    return _with_skip(sentence, reminder, language)


def _with_skip(sentence: str, reminder: Fields, language: Language) -> str:
    return f"{sentence}\n\n{say('clock-skips', language)}" if reminder["skips"] else sentence


def _promise(reminder: Fields, language: Language) -> str:
    """Only its author sets and changes a reminder, so theirs is for “you”."""
    key = "promise-once" if reminder["repeats"] == "once" else "promise-repeated"
    you = say("yourself", language) if reminder["for_author"] else ""
    when = _outcome_due(reminder, language, is_set=True)
    whom = you or _whom(reminder, language)
    return say(key, language, when=when, whom=whom, text=quotable(reminder["text"]))


def _listed_text(fields: Fields, language: Language) -> str:
    reminders = fields["reminders"]
    lines = (
        f"{one.get('number', n)}. {_outcome_line(one, language)}"
        for n, one in enumerate(reminders, 1)
    )
    return "\n".join((say("reminders-listed", language, n=len(reminders)), "", *lines))


def _outcome_line(reminder: Fields, language: Language) -> str:
    when, whom = _outcome_due(reminder, language), _whom(reminder, language)
    return say("reminder-line", language, when=when, whom=whom, text=quotable(reminder["text"]))


def _outcome_due(reminder: Fields, language: Language, *, is_set: bool = False) -> str:
    at, now = (datetime.fromisoformat(reminder[name]) for name in ("at", "now"))
    counted_from = datetime.fromisoformat(reminder.get("counted_from", reminder["at"]))
    repeats = reminder["repeats"]
    return due_words(repeats, at, now, language, counted_from=counted_from, is_set=is_set)


def _whom(reminder: Fields, language: Language) -> str:
    if reminder["for_all"]:
        return say("everybody", language)
    unknown = say("another-person", language)
    return join_list((name or unknown for name in reminder["people"]), language)


def _past(fields: Fields, language: Language) -> str:
    at, now = (datetime.fromisoformat(fields[name]) for name in ("at", "now"))
    return _asking_when("time-past", {"at": coming_text(at, language, now=now)}, language)


def _asking_when(kind: str, fields: Fields, language: Language) -> str:
    return say("ask-when", language, reason=say(kind, language, **fields))


WORDING = Wording(
    _CATALOGUE,
    {
        "reminder-set": _set_text,
        "reminder-changed": _changed_text,
        "reminders-listed": _listed_text,
        "time-past": _past,
        **{kind: partial(_asking_when, kind) for kind in _ASKING_WHEN},
    },
)
