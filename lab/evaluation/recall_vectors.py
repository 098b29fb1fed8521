"""Recall with vectors, for the evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from bot.agents.embeddings.embedder import Embedder
from bot.answering.embedding import embed_new
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.models import Likeness
from memory.scope import AgentMemoryContext

_BATCH = 64


async def embed_conversations(
    url: str,
    embedder: Embedder,
    people: Sequence[AgentMemoryContext],
    report: Callable[[str], None],
) -> None:
    """Gives every stored message its embedding. Raises `EmbeddingFailed`."""
    pool = connection_pool(url, size=1)
    await pool.open()
    rpc = PostgresRpc(pool, timeout_s=60)
    done = 0
    for who in people:
        done += await embed_new(rpc, embedder, who, most=1_000_000, recent=None)
        report(f"  {done:,} messages embedded")
    await rpc.close()


async def embed_questions(embedder: Embedder, questions: Sequence[str]) -> dict[str, Likeness]:
    """The likeness of every question, of weight 1. Raises `EmbeddingFailed`."""
    found: dict[str, Likeness] = {}
    for first in range(0, len(questions), _BATCH):
        asked = questions[first : first + _BATCH]
        found |= zip(asked, await embedder.of_questions(asked), strict=True)
    return found


def weighed(likenesses: Mapping[str, Likeness], weight: float) -> dict[str, Likeness]:
    """The same questions with another weight."""
    return {text: replace(one, weight=weight) for text, one in likenesses.items()}
