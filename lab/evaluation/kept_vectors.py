"""Vectors of an embedding model kept in a file, so that a text is embedded once in all runs."""

from __future__ import annotations

import hashlib
import sqlite3
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bot.agents.embeddings.embedder import Embedder
from memory.tables.embeddings import Vector


class KeepingEmbedder(Embedder):
    """Asks the endpoint only for what `file` does not have. What follows is `Embedder`'s."""

    def __init__(self, file: Path, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._kept = sqlite3.connect(file, timeout=60)
        self._kept.execute(
            "create table if not exists vectors (text blob primary key, vector blob)"
        )

    async def close(self) -> None:
        self._kept.close()
        await super().close()

    async def _ask(self, of: str, texts: Sequence[str], within_s: float) -> list[Vector]:
        keys = [self._key(of, text) for text in texts]
        new = [place for place, key in enumerate(keys) if self._read(key) is None]
        if new:
            vectors = await super()._ask(of, [texts[place] for place in new], within_s)
            self._kept.executemany(
                "insert or replace into vectors values (?, ?)",
                [
                    (keys[place], array("f", vector).tobytes())
                    for place, vector in zip(new, vectors, strict=True)
                ],
            )
            self._kept.commit()
        return [self._read(key) or () for key in keys]

    def _key(self, of: str, text: str) -> bytes:
        return hashlib.sha256(f"{self.name}\n{of}\n{text}".encode()).digest()

    def _read(self, key: bytes) -> Vector | None:
        row = self._kept.execute("select vector from vectors where text = ?", (key,)).fetchone()
        return array("f", row[0]) if row else None
