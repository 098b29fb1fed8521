"""The part of `scripts/memory` that gives stored messages their embeddings.

What embeds is loaded when it is asked for: it is half of all that `scripts/memory` would load.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from memory.tables.embeddings import Backlog, EmbeddingStore
from scripts.operating.console import FINDINGS, print_json, progress
from scripts.operating.desk import OperatorDesk

if TYPE_CHECKING:
    from bot.agents.embeddings.embedder import Embedder


class NothingToEmbedWith(Exception):
    """There is no embedding model, or no place for vectors; the message says what to do."""


async def embed_everything(desk: OperatorDesk, given: argparse.Namespace) -> int:
    """Embeds every message without an embedding of the configured model, and then drops those of
    other models; with `--model` of that one, beside the others.

    Can be broken off and run again. Status 1 when the model refused messages or stopped answering.
    """
    from bot.agents.embeddings.embedder import build_embedder

    settings, dropped = desk.settings, 0
    if given.model:
        address = given.base_url or settings.embedding_base_url
        settings = replace(settings, embedding_model=given.model, embedding_base_url=address)
    embedder = build_embedder(settings)
    if embedder is None:
        raise NothingToEmbedWith("set EMBEDDING_MODEL first: without it recall goes by words alone")
    try:
        backlog = await EmbeddingStore(desk.rpc).backlog(embedder.name)
        if backlog is None:
            raise NothingToEmbedWith("the database has no vectors: scripts/migrate says why")
        done, failure = await _embed(desk, embedder, backlog)
        left = sum(one.messages for one in backlog) - done
        if not left and not given.model:
            dropped = await EmbeddingStore(desk.rpc).drop_others(embedder.name)
    finally:
        await embedder.close()
    if given.json:
        counts = {"embedded": done, "left": left, "dropped": dropped}
        print_json({"model": embedder.name, **counts, "failure": failure})
    else:
        print(f"{done} messages embedded by {embedder.name}, {left} left")
        if dropped:
            print(f"{dropped} embeddings of other models dropped")
        if given.model and not left:
            print(
                f"Set EMBEDDING_MODEL={given.model}, start the bot again, "
                "and run this without --model."
            )
    if failure:
        print(f"stopped: {failure}. Run this again later.", file=sys.stderr)
    return FINDINGS if left > 0 else 0


async def _embed(
    desk: OperatorDesk, embedder: Embedder, backlog: tuple[Backlog, ...]
) -> tuple[int, str | None]:
    """How many, and why it stopped before the end."""
    from bot.agents.embeddings.embedder import EmbeddingFailed
    from bot.answering.embedding import embed_new

    done = 0
    with progress("messages", sum(one.messages for one in backlog)) as step:
        for one in backlog:
            try:
                embedded = await embed_new(
                    desk.rpc, embedder, one.context, most=one.messages, recent=None
                )
            except EmbeddingFailed as exc:
                return done, str(exc)
            for _ in range(embedded):
                step()
            done += embedded
    return done, None
