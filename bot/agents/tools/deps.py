"""What a tool works with in one turn, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from bot.agents.authority.rules import AskerExchange
from bot.agents.prompts.prompt import Ended, PendingAction, Prompt
from bot.agents.running_turns import OnProgress, Spent
from bot.agents.tool_types import NO_TOOLS, Toolbox
from bot.feishu.user_scopes import AccessNeeds
from memory.models import QuestionEmbedding
from memory.recall.passages import Passage, RecallScope
from memory.recall.selection import RenderedPassages
from memory.scope import AgentMemoryContext
from memory.store import MemoryStore
from memory.tables.notes import NoteStore
from memory.tables.timers import TimerStore

Recall = Callable[
    [AgentMemoryContext, str, RecallScope, int, str, datetime], Awaitable[RenderedPassages]
]
"""Finds earlier messages of the turn's person: context, query, scope, how many, the turn that asks,
which does not count as earlier, and when it was asked: the query's days count from then.

Raises `StoreError`.
"""

MayBeTold = Callable[[Collection[str]], Awaitable[bool]]
"""Whether what comes from these ids (`bot.agents.running_turns`) may be told to its readers.
Raises `StoreError`."""


class Opened(Protocol):
    """What a feature opens for its tools, for one turn of the person who asks."""

    @property
    def needs(self) -> AccessNeeds:
        """What the tools lacked."""

    async def may_still_be_told(self) -> bool:
        """Whether everybody who reads the answer may see what the tools read."""


Liken = Callable[[str], Awaitable[QuestionEmbedding | None]]
"""What finds by meaning: that of a query; None when it cannot be had in time."""


@dataclass(slots=True)
class ToolDeps:
    """One turn's tools: whose memory they work on (the code decides, never the model).

    `calls`, `follow_ups`, `pending`, `files` (`bot.files.writing`), `specialists` and `passages`
    (what `recall` found) are filled while the agents run. `prompt` is what a specialist is told
    besides its own instructions; it shares `usage` and `on_progress`. `outside` are the tools of
    MCP servers as the turn found them. `note_done` keeps, beside the turn, the name of a tool that
    has changed something. `exchange`, `words_of_model` and `reads_only` are those of the `Prompt`;
    `is_confirmed`: the person pressed the button for exactly this call. `end_reason` says why the
    answer that a specialist gives to the person is not complete. `opened_sources` is what features
    opened for this turn, by the feature's name (`Opened`); `may_be_told` is asked of what a tool
    gives before a model sees it.
    """

    context: AgentMemoryContext
    notes: NoteStore
    store: MemoryStore
    prompt: Prompt
    recall: Recall | None = None
    liken: Liken | None = None
    timers: TimerStore | None = None
    outside: Toolbox = NO_TOOLS
    note_done: Callable[[str], Awaitable[None]] | None = None
    exchange: AskerExchange | None = None
    words_of_model: bool = False
    is_confirmed: bool = False
    opened_sources: Mapping[str, Any] = field(default_factory=dict)
    may_be_told: MayBeTold | None = None
    reads_only: bool = False
    usage: Spent = field(default_factory=Spent)
    on_progress: OnProgress | None = None
    calls: list[dict[str, Any]] = field(default_factory=list)
    follow_ups: list[str] = field(default_factory=list)
    pending: list[PendingAction] = field(default_factory=list)
    specialists: list[str] = field(default_factory=list)
    files: list[dict[str, str]] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)
    end_reason: Ended = ""
