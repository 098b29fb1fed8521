"""What came of the tools for reminders, in sentences that carry the id for later turns. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from bot.agents.tool_types.outcomes import ToolOutcome
from memory.tables.timers import Plan, Timer

Names = Mapping[str, str]
"""open_id → name, of who is known here."""


def was_set(timer: Timer, names: Names, now: datetime, skips: str) -> ToolOutcome:
    """`skips`: what to say when the clock leaves the time out; "" otherwise."""
    fields = {**_fields(timer, names, now), "skips": bool(skips)}
    result = f"Successfully set reminder {_described(timer, names)}{skips}"
    return ToolOutcome(result, "reminder-set", fields)


def changed(timer: Timer, names: Names, now: datetime, skips: str) -> ToolOutcome:
    """`skips`: as in `was_set`."""
    fields = {**_fields(timer, names, now), "skips": bool(skips)}
    result = f"Successfully changed reminder {_described(timer, names)}{skips}"
    return ToolOutcome(result, "reminder-changed", fields)


def cancelled(timer: Timer, names: Names, now: datetime) -> ToolOutcome:
    result = f"Successfully cancelled reminder {_described(timer, names)}"
    return ToolOutcome(result, "reminder-cancelled", _fields(timer, names, now))


def listed(timers: Sequence[Timer], names: Names, now: datetime) -> ToolOutcome:
    if not timers:
        return ToolOutcome("There are no reminders here.", "no-reminders")
    lines = [f"{number}. {_described(one, names)}" for number, one in enumerate(timers, 1)]
    return ToolOutcome(
        "\n".join((f"{len(lines)} to come:", *lines)),
        "reminders-listed",
        {"reminders": [_fields(one, names, now) for one in timers]},
    )


def _described(timer: Timer, names: Names) -> str:
    """“(ID: tm_…) on 2026-11-23 15:00 Monday, daily, for Alice: text”."""
    plan = timer.plan
    people = ", ".join(name or "another person" for name in _people(plan, names))
    whom = "everybody here" if plan.for_all else people
    often = "" if plan.repeats == "once" else f", {plan.repeats}"
    return f"(ID: {timer.id}) on {_due(plan):%Y-%m-%d %H:%M %A}{often}, for {whom}: {plan.content}"


def _fields(timer: Timer, names: Names, now: datetime) -> dict[str, Any]:
    """`people` are names, "" for who is not known here; `for_author`: it is for nobody else."""
    plan = timer.plan
    return {
        "id": timer.id,
        "at": f"{_due(plan):%Y-%m-%dT%H:%M}",
        "repeats": plan.repeats,
        "now": f"{now:%Y-%m-%dT%H:%M}",
        "for_all": plan.for_all,
        "for_author": plan.for_people == (timer.context.actor_id,),
        "people": _people(plan, names),
        "text": plan.content,
    }


def _people(plan: Plan, names: Names) -> list[str]:
    return [names.get(one, "") for one in plan.for_people]


def _due(plan: Plan) -> datetime:
    return datetime.fromtimestamp(plan.due_ms / 1000, ZoneInfo(plan.zone))
