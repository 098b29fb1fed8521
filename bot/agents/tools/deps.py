"""What a tool works with in one turn, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from pydantic_ai.messages import ModelMessage

from memory.notes import NoteStore
from memory.scope import AgentMemoryContext
from memory.store import MemoryStore

RecallScope = Literal["thread", "chat", "everywhere"]
Recall = Callable[[AgentMemoryContext, str, RecallScope, int], Awaitable[str]]
"""Finds earlier messages of the turn's person: context, query, scope and how many; rendered text.

Raises `StoreError`.
"""


@dataclass(frozen=True, slots=True)
class PendingAction:
    """A tool call that waits for the press of a button by the person who asked.

    `id` is opaque and goes into the button; `tool` is the name with its server in front. Only
    `actor_id` may confirm it.
    """

    id: str
    tool: str
    arguments: dict[str, Any]
    description: str
    actor_id: str
    conversation_id: str


@dataclass(slots=True)
class ToolDeps:
    """One turn's tools: whose memory they work on (the code decides, never the model).

    `calls`, `follow_ups` and `pending` are filled while the agents run; `setting` and `history` are
    what a specialist is told besides its own instructions.
    """

    context: AgentMemoryContext
    notes: NoteStore
    store: MemoryStore
    now: datetime
    subject: str = ""
    turn_id: str = ""
    setting: str = ""
    question: str = ""
    history: Sequence[ModelMessage] = ()
    recall: Recall | None = None
    calls: list[dict[str, Any]] = field(default_factory=list)
    follow_ups: list[str] = field(default_factory=list)
    pending: list[PendingAction] = field(default_factory=list)
    consulted: list[str] = field(default_factory=list)
