"""A turn as it was opened, without what comes from some sources. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from memory.models import OpenTurn, StoredMessage, WorkingMemory
from memory.tables.notes import note_source


def without_sources(open_turn: OpenTurn, hidden_ids: Collection[str]) -> OpenTurn:
    """`hidden_ids` are ids of messages, turns, notes and threads. The question stays. Facts stay
    out together: which of them comes from where is not told."""
    memory, summary = open_turn.working_memory, open_turn.summary
    return replace(
        open_turn,
        history=(*_without(open_turn.history[:-1], hidden_ids), *open_turn.history[-1:]),
        working_memory=WorkingMemory() if set(memory.turns) & set(hidden_ids) else memory,
        registry=tuple(
            one for one in open_turn.registry if note_source(str(one["id"])) not in hidden_ids
        ),
        summary=None if summary and summary.source in hidden_ids else summary,
    )


def _without(
    messages: Sequence[StoredMessage], hidden_ids: Collection[str]
) -> tuple[StoredMessage, ...]:
    """An answer that was shown under no id goes with the question before it."""
    kept_messages, question_id = list[StoredMessage](), ""
    for one in messages:
        question_id = one.message_id or "" if one.role == "user" else question_id
        if (one.message_id or question_id) not in hidden_ids:
            kept_messages.append(one)
    return tuple(kept_messages)
