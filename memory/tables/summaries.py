"""Where summaries are kept: what a fold starts from, and the next version of what it made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory.rpc import Rpc, call_as
from memory.scope import AgentMemoryContext
from memory.text import as_json

_MESSAGES_AT_ONCE = 60


@dataclass(frozen=True, slots=True)
class FoldedMessage:
    """A message to fold, as stored. `created_at` is ISO 8601; `rows` are the ids of its rows,
    `note_ids` the notes that its tools worked with. Nothing is told of a `command`."""

    id: int
    role: str
    content: str
    actor_id: str
    actor_name: str
    created_at: str
    rows: tuple[int, ...]
    note_ids: tuple[str, ...] = ()
    command: bool = False


@dataclass(frozen=True, slots=True)
class Fold:
    """What a fold starts from: the summary so far (`content` is empty without one), what it has to
    hold (`references`), how many messages are `folded` in it, and those that come next."""

    summary_id: int | None
    version: int
    content: str
    references: tuple[str, ...]
    folded: int
    messages: tuple[FoldedMessage, ...]


class Summaries:
    """Where the summaries are kept; methods are one round trip and raise `memory.errors`."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def open_fold(self, context: AgentMemoryContext, *, window: int, least: int = 1) -> Fold:
        """The oldest messages after the summary that the last `window` do not include; none unless
        there are at least `least`. Nothing from before a fresh start is given."""
        row = await self._call(
            "open_fold", context, p_window=window, p_least=least, p_limit=_MESSAGES_AT_ONCE
        )
        return Fold(
            summary_id=row["id"],
            version=row["version"],
            content=row["content"],
            references=tuple(row["verbatim"]),
            folded=row["folded"],
            messages=tuple(map(_message, row["messages"])),
        )

    async def save(
        self,
        context: AgentMemoryContext,
        fold: Fold,
        *,
        content: str,
        references: Sequence[str],
        messages: Sequence[FoldedMessage],
    ) -> int | None:
        """Stores the next version, made from `messages` of `fold`; returns its number.

        None: another fold was first, or one of the messages is gone. Nothing is stored then.
        """
        row = await self._call(
            "save_summary",
            context,
            p_summary_id=fold.summary_id,
            p_expected_version=fold.version,
            p_content=content,
            p_verbatim=as_json(list(references)),
            p_rows=as_json([row for message in messages for row in message.rows]),
            p_messages=fold.folded + len(messages),
        )
        version: int | None = row["version"]
        return version

    async def _call(self, function: str, context: AgentMemoryContext, **params: object) -> Any:
        return await call_as(self._rpc, function, context, **params)


def _message(row: Mapping[str, Any]) -> FoldedMessage:
    lists = {"rows": tuple(row["rows"]), "note_ids": tuple(row["note_ids"])}
    return FoldedMessage(**{**row, **lists})
