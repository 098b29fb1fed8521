"""A turn as it was opened, without what comes from some sources. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from memory.models import OpenTurn, StoredMessage, WorkingMemory
from memory.tables.notes import note_source


def without_sources(opened: OpenTurn, hidden: Collection[str]) -> OpenTurn:
    """`hidden` are ids of messages, turns, notes and threads. The question stays. Facts stay out
    together: which of them comes from where is not told."""
    memory, summary = opened.working_memory, opened.summary
    return replace(
        opened,
        history=(*_without(opened.history[:-1], hidden), *opened.history[-1:]),
        working_memory=WorkingMemory() if set(memory.turns) & set(hidden) else memory,
        registry=tuple(one for one in opened.registry if note_source(str(one["id"])) not in hidden),
        summary=None if summary and summary.source in hidden else summary,
    )


def _without(
    messages: Sequence[StoredMessage], hidden: Collection[str]
) -> tuple[StoredMessage, ...]:
    """An answer that was shown under no id goes with the question before it."""
    kept, asked = list[StoredMessage](), ""
    for one in messages:
        asked = one.message_id or "" if one.role == "user" else asked
        if (one.message_id or asked) not in hidden:
            kept.append(one)
    return tuple(kept)
