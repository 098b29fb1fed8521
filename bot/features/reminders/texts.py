"""What people read about their reminders, in both languages. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo

from bot.text.catalogues import Catalogue
from bot.text.languages import Language, join_list
from memory.tables.timers import Timer
from memory.text import one_line

_TEXT_CHARS = 200

say = Catalogue(__file__).say


def named_in(timer: Timer) -> tuple[str, ...]:
    """The open_ids whose names its line shows."""
    return (*timer.plan.for_people, timer.context.actor_id)


def listed(
    timers: Sequence[Timer],
    total: int,
    name: Callable[[str], str],
    zone: tzinfo,
    language: Language,
) -> str:
    """Numbered, the next one first; times are those of `zone`."""
    if not timers:
        return say("none", language)
    lines = [_line(number, one, name, zone, language) for number, one in enumerate(timers, 1)]
    return "\n".join((say("reminders", language, total=total), "", *lines))


def cancelled(timer: Timer, language: Language) -> str:
    return say("cancelled", language, text=_text(timer))


def moment(at: datetime, language: Language) -> str:
    """A day with its weekday, and the time."""
    day = say("days", language).split()[at.weekday()]
    return say("moment", language, day=day, date=f"{at:%Y-%m-%d}", time=f"{at:%H:%M}")


def _line(
    number: int, timer: Timer, name: Callable[[str], str], zone: tzinfo, language: Language
) -> str:
    plan, author = timer.plan, timer.context.actor_id
    repeated = plan.repeats != "once"
    people = join_list((one_line(name(person)) for person in plan.for_people), language)
    line = say(
        "line-repeated" if repeated else "line",
        language,
        number=number,
        when=moment(datetime.fromtimestamp(plan.due_ms / 1000, zone), language),
        often=say(f"repeats-{plan.repeats}", language) if repeated else "",
        whom=say("everybody", language) if plan.for_all else people,
        text=_text(timer),
    )
    own = plan.for_people == (author,)
    return line if own else line + say("by", language, name=one_line(name(author)))


def _text(timer: Timer) -> str:
    line = one_line(timer.plan.content).replace("`", "'")
    return line if len(line) <= _TEXT_CHARS else line[: _TEXT_CHARS - 1] + "…"
