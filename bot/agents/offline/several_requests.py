"""Splits a message into the requests that it makes, for the offline model. Pure.

“Remember that …, and remind me …” is two requests. “Remind me to call Bob and delete the draft” is
one: what a reminder, a note or a fact says is not carried out."""

from __future__ import annotations

import re

from bot.agents.offline.agenda_requests import agenda_call
from bot.agents.offline.commands import command
from bot.agents.offline.facts import fact_to_remember
from bot.agents.offline.reminders import ANY_DAY, DAYS, reminder_wish
from memory.dates import named_days
from memory.text import has_han

_MOST = 4
_LONGEST = 400
_JOINT = re.compile(
    r"[.!?;。！？；,，]?\s(?:and|then|also)(?: also| then)?\s|[.!?;]\s|[。！？；]"
    r"|[，,](?:顺便|然后|另外|还有|同时|并且|也|再)?",
    re.IGNORECASE,
)
_OWN_DAY = re.compile(r"\bin \w|\b(?:every|each|daily|weekly|monthly)\b|每|过|后", re.IGNORECASE)
_TELLS = frozenset({"make", "set", "remember", "agenda"})
_READS = frozenset({"list", "find"})


def requests_in(question: str) -> list[str]:
    """The requests in `question`, each whole by itself; it alone if it makes no more than one."""
    if len(question) > _LONGEST:
        return [question]
    parts = [part.strip() for part in _JOINT.split(question) if part.strip()]
    kinds = [_kind(part) for part in parts]
    if not 2 <= len(parts) <= _MOST or not all(kinds):
        return [question]
    after_text = kinds[next((n for n, one in enumerate(kinds) if one in _TELLS), len(kinds)) :]
    if not set(after_text) <= _TELLS | _READS:
        return [question]
    return _on_the_day_before(parts, kinds)


def _on_the_day_before(parts: list[str], kinds: list[str]) -> list[str]:
    """A reminder without a day is for the day of the one before: “tomorrow at 9 …, at 11 …”."""
    day, requests = "", []
    for part, kind in zip(parts, kinds, strict=True):
        named = next(named_days(part, DAYS, ANY_DAY.date()), None)
        if named:
            day = part[named.start : named.end]
        elif day and kind == "set" and not _OWN_DAY.search(part):
            part = f"{day}{part}" if has_han(part) else f"{part} {day}"
        requests.append(part)
    return requests


def _kind(text: str) -> str:
    """What `text` asks for; "" if it is no request by itself."""
    if fact_to_remember(text):
        return "remember"
    if wish := reminder_wish(text):
        return wish.kind
    if note_request := command(text):
        return note_request.kind
    return "agenda" if agenda_call(text) else ""
