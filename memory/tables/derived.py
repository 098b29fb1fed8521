"""Stores what background jobs derive from messages: summaries and embeddings.

An embedding belongs to one stored message and one embedding model. Nothing here talks to a
model."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory.rpc import Rpc, call_as
from memory.scope import AgentMemoryContext, own_context
from memory.text import as_json

_MESSAGES_AT_ONCE = 60

Vector = Sequence[float]

# Embedding models read some 8,000 tokens; what a message is about stands in its beginning.
_LONGEST_TEXT = 4000
_AT_TAG = re.compile(r"<at\b[^<>]{0,200}>(?:[^<]{0,200}</at>)?", re.IGNORECASE)
_ADDRESSES = re.compile(r"\s*(?:@\S{1,60}\s+)+")


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
class SummaryFold:
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

    async def open_fold(
        self, context: AgentMemoryContext, *, window: int, least: int = 1
    ) -> SummaryFold:
        """The oldest messages after the summary that the last `window` do not include; none unless
        there are at least `least`. Nothing from before a fresh start is given."""
        row = await self._call(
            "open_fold", context, p_window=window, p_least=least, p_limit=_MESSAGES_AT_ONCE
        )
        return SummaryFold(
            summary_id=row["id"],
            version=row["version"],
            content=row["content"],
            references=tuple(row["verbatim"]),
            folded=row["folded"],
            messages=tuple(map(_folded_message, row["messages"])),
        )

    async def save(
        self,
        context: AgentMemoryContext,
        fold: SummaryFold,
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


def _folded_message(row: Mapping[str, Any]) -> FoldedMessage:
    lists = {"rows": tuple(row["rows"]), "note_ids": tuple(row["note_ids"])}
    return FoldedMessage(**{**row, **lists})


@dataclass(frozen=True, slots=True)
class Unembedded:
    """A stored message without an embedding; `digest` is of its content."""

    id: int
    content: str
    digest: str


@dataclass(frozen=True, slots=True)
class EmbeddingBacklog:
    """A conversation, as its owner reaches it, and how many of its messages have no embedding."""

    context: AgentMemoryContext
    messages: int


class EmbeddingStore:
    """Where embeddings are kept; methods are one round trip and raise `memory.errors`.

    None as a result: the database has no vectors, for pgvector is missing (`enable_vectors`).
    """

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def missing(
        self, context: AgentMemoryContext, model: str, *, limit: int, recent: int | None = None
    ) -> tuple[Unembedded, ...] | None:
        """Messages of the conversation that have no embedding of `model`, newest first.

        At most `limit`, among the `recent` newest ones (None: all).
        """
        rows = await self._call(
            "messages_to_embed", context, p_model=model, p_limit=limit, p_recent=recent
        )
        return None if rows is None else tuple(Unembedded(**row) for row in rows)

    async def save(
        self, context: AgentMemoryContext, model: str, vectors: Sequence[tuple[Unembedded, Vector]]
    ) -> int:
        """Keeps the embeddings of messages that are still what was embedded; returns how many."""
        rows = [
            {"id": message.id, "digest": message.digest, "embedding": vector_text(vector)}
            for message, vector in vectors
        ]
        count: int = await self._call(
            "save_embeddings", context, p_model=model, p_embeddings=json.dumps(rows)
        )
        return count

    async def backlog(self, model: str) -> tuple[EmbeddingBacklog, ...] | None:
        """For operators: every conversation with messages that have no embedding of `model`."""
        rows = await self._rpc.call("conversations_to_embed", {"p_model": model}, None)
        return None if rows is None else tuple(map(_backlog_of_row, rows))

    async def counts(self) -> dict[str, int]:
        """For operators: how many messages have an embedding, by model."""
        return await self._rpc.call("count_embeddings", {}, None) or {}

    async def drop_others(self, model: str) -> int:
        """For operators: deletes the embeddings of other models; returns how many."""
        count = 0
        while some := await self._rpc.call("drop_other_embeddings", {"p_model": model}, None):
            count += some
        return count

    async def _call(self, function: str, context: AgentMemoryContext, **params: object) -> Any:
        whose = {"p_tenant_key": context.tenant_key}
        return await call_as(self._rpc, function, context, **whose, **params)


def _backlog_of_row(row: dict[str, Any]) -> EmbeddingBacklog:
    whose = own_context(row["conversation_id"], row["user_id"], row["tenant_key"])
    return EmbeddingBacklog(whose, row["messages"])


def vector_text(vector: Vector) -> str:
    """`[0.1,…]`, as it travels to the database.

    Raises ValueError for what points nowhere: empty, all zero, or not finite.
    """
    if not any(vector) or not all(map(math.isfinite, vector)):
        raise ValueError("an embedding is a list of finite numbers, not all of them zero")
    return f"[{','.join(f'{value:.7g}' for value in vector)}]"


def text_to_embed(text: str) -> str:
    """What is embedded of a text: without at-tags and the names it begins with, and not too long.

    Names of speakers make every message of one person look alike. A text of nothing else stays.
    """
    untagged_text = _AT_TAG.sub(" ", text)
    names = _ADDRESSES.match(untagged_text)
    words = untagged_text[names.end() :] if names else untagged_text
    return (words.strip() or text.strip())[:_LONGEST_TEXT]
