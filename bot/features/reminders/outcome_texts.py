"""What people are told of the outcomes of the tools for reminders. Pure."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from bot.agents.tool_types.outcomes import Fields, Wording
from bot.features.reminders import texts
from bot.text.catalogues import Catalogue
from bot.text.dates.spoken import coming
from bot.text.languages import Language, join_list

_ASKING_WHEN = (
    "time-far", "no-time-of-day", "no-such-time", "time-several", "time-halves",
    "nothing-to-remind",
)  # fmt: skip

_CATALOGUE = Catalogue(__file__)
say = _CATALOGUE.say


def _set(reminder: Fields, language: Language) -> str:
    sentence = say("reminder-set", language, promise=_promise(reminder, language))
    return _with_skip(sentence, reminder, language)


def _changed(reminder: Fields, language: Language) -> str:
    sentence = say("reminder-changed", language, promise=_promise(reminder, language))
    return _with_skip(sentence, reminder, language)


def _with_skip(sentence: str, reminder: Fields, language: Language) -> str:
    return f"{sentence}\n\n{say('clock-skips', language)}" if reminder["skips"] else sentence


def _promise(reminder: Fields, language: Language) -> str:
    """Only its author sets and changes a reminder, so theirs is for “you”."""
    key = "promise-once" if reminder["repeats"] == "once" else "promise-repeated"
    you = say("yourself", language) if reminder["for_author"] else ""
    when = _when(reminder, language, is_set=True)
    whom = you or _whom(reminder, language)
    return say(key, language, when=when, whom=whom, text=reminder["text"])


def _listed(fields: Fields, language: Language) -> str:
    reminders = fields["reminders"]
    lines = (f"{n}. {_line(one, language)}" for n, one in enumerate(reminders, 1))
    return "\n".join((say("reminders-listed", language, n=len(reminders)), "", *lines))


def _line(reminder: Fields, language: Language) -> str:
    when, whom = _when(reminder, language), _whom(reminder, language)
    return say("reminder-line", language, when=when, whom=whom, text=reminder["text"])


def _when(reminder: Fields, language: Language, *, is_set: bool = False) -> str:
    at, now = (datetime.fromisoformat(reminder[name]) for name in ("at", "now"))
    return texts.when(reminder["repeats"], at, now, language, is_set=is_set)


def _whom(reminder: Fields, language: Language) -> str:
    if reminder["for_all"]:
        return texts.say("everybody", language)
    unknown = say("another-person", language)
    return join_list((name or unknown for name in reminder["people"]), language)


def _past(fields: Fields, language: Language) -> str:
    at, now = (datetime.fromisoformat(fields[name]) for name in ("at", "now"))
    return _asking_when("time-past", {"at": coming(at, language, now=now)}, language)


def _asking_when(kind: str, fields: Fields, language: Language) -> str:
    return say("ask-when", language, reason=say(kind, language, **fields))


WORDING = Wording(
    _CATALOGUE,
    {
        "reminder-set": _set,
        "reminder-changed": _changed,
        "reminders-listed": _listed,
        "time-past": _past,
        **{kind: partial(_asking_when, kind) for kind in _ASKING_WHEN},
    },
)
