"""What people are told of the outcomes of the tools for reminders. Pure."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from bot.agents.tool_types.outcomes import Fields, Wording
from bot.features.reminders import texts
from bot.text.catalogues import Catalogue
from bot.text.languages import Language, join_list

_ASKING_WHEN = (
    "time-past", "time-far", "no-time-of-day", "no-such-time", "time-several", "time-halves",
    "nothing-to-remind",
)  # fmt: skip

_CATALOGUE = Catalogue(__file__)
say = _CATALOGUE.say


def _set(reminder: Fields, language: Language) -> str:
    said = say("reminder-set", language, line=_line(reminder, language))
    return _with_skip(said, reminder, language)


def _changed(reminder: Fields, language: Language) -> str:
    said = say("reminder-changed", language, line=_line(reminder, language))
    return _with_skip(said, reminder, language)


def _with_skip(said: str, reminder: Fields, language: Language) -> str:
    return f"{said}\n\n{say('clock-skips', language)}" if reminder["skips"] else said


def _listed(found: Fields, language: Language) -> str:
    reminders = found["reminders"]
    lines = (f"{n}. {_line(one, language)}" for n, one in enumerate(reminders, 1))
    return "\n".join((say("reminders-listed", language, n=len(reminders)), "", *lines))


def _line(reminder: Fields, language: Language) -> str:
    repeats = reminder["repeats"]
    repeated = repeats != "once"
    return say(
        "reminder-line-repeated" if repeated else "reminder-line",
        language,
        when=texts.moment(datetime.fromisoformat(reminder["at"]), language),
        often=texts.say(f"repeats-{repeats}", language) if repeated else "",
        whom=_whom(reminder, language),
        text=reminder["text"],
    )


def _whom(reminder: Fields, language: Language) -> str:
    if reminder["for_all"]:
        return texts.say("everybody", language)
    unknown = say("another-person", language)
    return join_list((name or unknown for name in reminder["people"]), language)


def _asking_when(kind: str, fields: Fields, language: Language) -> str:
    return say("ask-when", language, reason=say(kind, language, **fields))


WORDING = Wording(
    _CATALOGUE,
    {
        "reminder-set": _set,
        "reminder-changed": _changed,
        "reminders-listed": _listed,
        **{kind: partial(_asking_when, kind) for kind in _ASKING_WHEN},
    },
)
