"""Tools for reminders. They are posted in the conversation in which they are set."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bot.agents.prompts.drawn_on import note_sources
from bot.agents.tool_types.outcomes import ToolOutcome
from bot.agents.tool_types.tool import Tool, ToolFailed, tool
from bot.agents.tools.deps import ToolDeps
from bot.features.reminders import outcomes
from bot.features.reminders.outcome_texts import WORDING
from bot.features.reminders.planning import addressees, content_of, moment, skipped_remark
from bot.text.languages import language_of
from memory.errors import AccessDenied
from memory.tables.timers import (
    MOST_OF_A_CHAT,
    MOST_OF_A_PERSON,
    Plan,
    Repeats,
    Timer,
    TimerStore,
    TooMany,
)

_TOO_MANY = {
    "person": ("The person has {most} reminders here", "too-many-of-person", MOST_OF_A_PERSON),
    "chat": ("This chat has {most} reminders", "too-many-of-chat", MOST_OF_A_CHAT),
}


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
    local, due_ms, repeats = moment(at, repeats, now, deps.prompt.asked_at)
    people, for_all = addressees(
        for_whom, deps.prompt.people, context.actor_id, in_p2p=context.chat_type == "p2p"
    )
    plan = Plan(
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
    except TooMany as exc:
        limit, kind, most = _TOO_MANY[exc.whose]
        raise ToolFailed(
            f"{limit.format(most=most)} already, as many as may be. Nothing was set. One has to "
            "be cancelled first.",
            kind,
            most=most,
        ) from exc
    names = deps.prompt.people.names()
    return outcomes.was_set(timer, names, now, skipped_remark(local, now))


async def list_reminders(deps: ToolDeps) -> ToolOutcome:
    """List the reminders of this chat that are to come."""
    timers = await _timers(deps).list(deps.context)
    note_sources(timer.turn_id for timer in timers)
    return outcomes.listed(timers, deps.prompt.people.names(), deps.prompt.now)


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
    timer = await _found(deps, reminder_id)
    now, old = deps.prompt.now, timer.plan
    often = repeats or old.repeats
    when = at or f"{old.local_at:%Y-%m-%dT%H:%M}"
    if timer.context.actor_id != deps.context.actor_id:
        raise ToolFailed(
            "Only who set a reminder can change it. Nothing was changed. Say so.",
            "not-yours-to-change",
        )
    local, due_ms, often = moment(when, often, now, deps.prompt.asked_at)
    plan = replace(
        old,
        content=old.content if text is None else content_of(text),
        local_at=local,
        zone=str(now.tzinfo),
        due_ms=due_ms,
        repeats=often,
    )
    if for_whom:
        people, for_all = addressees(
            for_whom,
            deps.prompt.people,
            deps.context.actor_id,
            in_p2p=deps.context.chat_type == "p2p",
        )
        plan = replace(plan, for_people=people, for_all=for_all)
    changed_timer = await _timers(deps).change(deps.context, timer.id, plan, deps.prompt.turn_id)
    if changed_timer is None:
        raise _no_such(reminder_id)
    names = deps.prompt.people.names()
    return outcomes.changed(changed_timer, names, now, skipped_remark(local, now))


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
    return outcomes.cancelled(timer, deps.prompt.people.names(), deps.prompt.now)


async def _found(deps: ToolDeps, reminder_id: str) -> Timer:
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
