"""What people had the bot remember in a group, as lines of a prompt. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from memory.models import GroupFact
from memory.recall.reading import Label, snippet, when

_LONGEST = 300


def group_lines(facts: Sequence[GroupFact], label: Label, now: datetime) -> list[str]:
    """A line for each fact: its id, when it was said, until when it held if it does not any more,
    who said so, and of whom."""
    return [_line(fact, label, now) for fact in facts]


def _line(fact: GroupFact, label: Label, now: datetime) -> str:
    until = f" · earlier, until {when(fact.until, now)}" if fact.until else ""
    author = label(fact.actor_id, "")
    about = f" about {label(fact.user_id, '')}" if fact.user_id != fact.actor_id else ""
    value = (
        fact.value if isinstance(fact.value, str) else json.dumps(fact.value, ensure_ascii=False)
    )
    fact_snippet = snippet(f"{fact.key.replace('_', ' ')}: {value}", _LONGEST)
    return (
        f"[{fact.id} · {when(fact.at, now)}{until}] {snippet(author + about, 60)}: {fact_snippet}"
    )
