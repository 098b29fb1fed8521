"""Splits a message into the requests that it makes, for the offline model. Pure.

“Remember that …, and remind me …” is two requests. “Remind me to call Bob and delete the draft” is
one: what a reminder, a note or a fact says is not carried out."""

from __future__ import annotations

import re

from bot.agents.offline.agenda_requests import agenda_call
from bot.agents.offline.commands import command
from bot.agents.offline.facts import fact_to_remember
from bot.agents.offline.reminders import reminder_wish

_MOST = 4
_LONGEST = 400
_JOINT = re.compile(
    r"[.!?;。！？；,，]?\s(?:and|then|also)(?: also| then)?\s|[.!?;]\s|[。！？；]"
    r"|[，,](?:顺便|然后|另外|还有|同时|并且|也|再)?",
    re.IGNORECASE,
)
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
    return parts if set(after_text) <= _TELLS | _READS else [question]


def _kind(text: str) -> str:
    """What `text` asks for; "" if it is no request by itself."""
    if fact_to_remember(text):
        return "remember"
    if wish := reminder_wish(text):
        return wish.kind
    if note_request := command(text):
        return note_request.kind
    return "agenda" if agenda_call(text) else ""
