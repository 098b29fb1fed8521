"""Words reminders and the outcomes of their tools for people, in both languages. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from bot.agents.tool_types import Fields, Wording
from bot.feishu.markup import quotable
from bot.text import times
from bot.text.catalogues import Catalogue
from bot.text.languages import Language, join_list
from bot.text.times import coming_text
from memory.tables.timers import Repeats, Timer

# In a list of 20, which has to fit on one card with its buttons.
_LISTED_CHARS, _NAME_CHARS = 80, 40
say = Catalogue(__file__).say

_ASKING_WHEN = (
    "time-far", "no-time-of-day", "no-such-time", "time-several", "time-halves",
    "nothing-to-remind",
)  # fmt: skip
_CATALOGUE = Catalogue(__file__)


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
        when=due_words(plan.repeats, due, now, language),
        whom=say("everybody", language) if plan.for_all else quotable(people, _NAME_CHARS),
        text=quotable(plan.content, _LISTED_CHARS),
    )
    own = plan.for_people == (author,)
    return line if own else line + say("by", language, name=quotable(name(author), _NAME_CHARS))


def due_words(
    repeats: Repeats, due: datetime, now: datetime, language: Language, *, is_set: bool = False
) -> str:
    """“Mon 30 Nov at 09:00”, or “every Monday at 09:00 (next: 30 Nov)”; “first” where it `is_set`
    just now."""
    if repeats == "once":
        return times.coming_text(due, language, now=now)
    often, day = (
        times.repetition_text(repeats, due, language),
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
    lines = (f"{n}. {_outcome_line(one, language)}" for n, one in enumerate(reminders, 1))
    return "\n".join((say("reminders-listed", language, n=len(reminders)), "", *lines))


def _outcome_line(reminder: Fields, language: Language) -> str:
    when, whom = _outcome_due(reminder, language), _whom(reminder, language)
    return say("reminder-line", language, when=when, whom=whom, text=quotable(reminder["text"]))


def _outcome_due(reminder: Fields, language: Language, *, is_set: bool = False) -> str:
    at, now = (datetime.fromisoformat(reminder[name]) for name in ("at", "now"))
    return due_words(reminder["repeats"], at, now, language, is_set=is_set)


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
