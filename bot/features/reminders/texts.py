"""What people read about their reminders, in both languages. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from bot.text.catalogues import Catalogue
from bot.text.dates import spoken
from bot.text.languages import Language, join_list
from memory.tables.timers import Repeats, Timer
from memory.text import one_line

_TEXT_CHARS = 200
# In a list of 20, which has to fit on one card with its buttons.
_LISTED_CHARS, _NAME_CHARS = 80, 40

say = Catalogue(__file__).say


def named_in(timer: Timer) -> tuple[str, ...]:
    """The open_ids whose names its line shows."""
    return (*timer.plan.for_people, timer.context.actor_id)


def listed(
    timers: Sequence[Timer],
    total: int,
    name: Callable[[str], str],
    now: datetime,
    language: Language,
) -> str:
    """Numbered, the next one first, a paragraph each; times are in the zone of `now`."""
    if not timers:
        return say("none", language)
    lines = [_line(number, one, name, now, language) for number, one in enumerate(timers, 1)]
    return "\n\n".join((say("reminders", language, total=total), *lines))


def cancelled(timer: Timer, language: Language) -> str:
    return say("cancelled", language, text=_short(timer.plan.content, _TEXT_CHARS))


def _line(
    number: int, timer: Timer, name: Callable[[str], str], now: datetime, language: Language
) -> str:
    plan, author = timer.plan, timer.context.actor_id
    due = datetime.fromtimestamp(plan.due_ms / 1000, now.tzinfo)
    people = join_list((name(person) for person in plan.for_people), language)
    line = say(
        "line",
        language,
        number=f"**{number}**",
        when=when(plan.repeats, due, now, language),
        whom=say("everybody", language) if plan.for_all else _short(people, _NAME_CHARS),
        text=_short(plan.content, _LISTED_CHARS),
    )
    own = plan.for_people == (author,)
    return line if own else line + say("by", language, name=_short(name(author), _NAME_CHARS))


def when(
    repeats: Repeats, due: datetime, now: datetime, language: Language, *, is_set: bool = False
) -> str:
    """“Mon 30 Nov at 09:00”, or “every Monday at 09:00 (next: 30 Nov)”; “first” where it `is_set`
    just now."""
    if repeats == "once":
        return spoken.coming(due, language, now=now)
    often, day = spoken.often(repeats, due, language), spoken.day(due, language, now=now)
    return say("repeated-from" if is_set else "repeated", language, often=often, day=day)


def _short(text: str, limit: int) -> str:
    line = one_line(text).replace("`", "'")
    return line if len(line) <= limit else line[: limit - 1] + "…"
