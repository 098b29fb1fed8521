"""Embedding what was said, in the background: the optional leg of recall is made here."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from bot.agents.embeddings.embedder import Embedder, EmbeddingFailed, EmbeddingRefused
from bot.services import Services
from memory.rpc import Rpc
from memory.scope import AgentMemoryContext
from memory.tables.embeddings import EmbeddingStore, Unembedded, Vector, bare

log = structlog.get_logger()

# A job of the background looks at so many of a conversation's newest messages, and embeds so many.
_RECENT = 1000
_MOST_A_JOB = 512


async def embed_messages(services: Services, context: AgentMemoryContext) -> None:
    """Embeds what has no embedding yet; what fails is left until a later turn asks again."""
    if services.embedder is None:
        return
    try:
        count = await embed_new(services.rpc, services.embedder, context)
    except EmbeddingFailed as exc:
        log.warning("embedding.postponed", reason=exc.reason)
    else:
        log.info("embedded", messages=count)


async def embed_new(
    rpc: Rpc,
    embedder: Embedder,
    context: AgentMemoryContext,
    *,
    most: int = _MOST_A_JOB,
    recent: int | None = _RECENT,
) -> int:
    """Embeds messages of the conversation that have no embedding, newest first; returns how many.

    At most `most`, among the `recent` newest. Raises `EmbeddingFailed` and `StoreError`.
    """
    store = EmbeddingStore(rpc)
    count = 0
    while count < most:
        limit = min(embedder.batch, most - count)
        messages = await store.missing(context, embedder.name, limit=limit, recent=recent)
        if messages is None:
            log.warning("embedding.no_vectors", next_step="run scripts/migrate: it says why")
        if not messages:
            break
        saved_count = await store.save(context, embedder.name, await _embedded(embedder, messages))
        if not saved_count:
            break  # what is left is refused, or has just gone
        count += saved_count
    return count


async def _embedded(
    embedder: Embedder, messages: Sequence[Unembedded]
) -> list[tuple[Unembedded, Vector]]:
    """Each message with its vector, without those that the endpoint does not take."""
    try:
        vectors = await embedder.of_messages([bare(message.content) for message in messages])
    except EmbeddingRefused:
        if len(messages) == 1:
            log.warning("embedding.refused", id=messages[0].id)
            return []
        half = len(messages) // 2
        return [
            *await _embedded(embedder, messages[:half]),
            *await _embedded(embedder, messages[half:]),
        ]
    return [pair for pair in zip(messages, vectors, strict=True) if any(pair[1])]
