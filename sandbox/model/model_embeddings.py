"""Vectors as the embeddings endpoint of an OpenAI-compatible API sends them. Pure.

The stand-in has no model of language: a vector counts a text's groups of one to three characters,
each at a place and with a sign that its checksum chooses. Texts that share spelling are alike,
texts that share only meaning are not. The same text has the same vector everywhere.
Source: OpenAI API reference, Embeddings.
"""

from __future__ import annotations

import math
import zlib
from typing import Any

DIMENSIONS = 256
_LONGEST_GROUP = 3
_MOST_TEXTS = 2048


class BadEmbeddingRequest(ValueError):
    """The request is not one that the API takes; the message says why."""


def embeddings(body: object, default_model: str) -> dict[str, Any]:
    """The answer to a request. Raises `BadEmbeddingRequest`."""
    if not isinstance(body, dict):
        raise BadEmbeddingRequest("send an object with model and input")
    texts = _texts(body.get("input"))
    dimensions = body.get("dimensions", DIMENSIONS)
    if not isinstance(dimensions, int) or not 1 <= dimensions <= 4096:
        raise BadEmbeddingRequest("dimensions is a number from 1 to 4096")
    tokens = sum(len(text.encode()) for text in texts) // 4
    return {
        "object": "list",
        "model": str(body.get("model", default_model)),
        "data": [
            {"object": "embedding", "index": index, "embedding": embedding(text, dimensions)}
            for index, text in enumerate(texts)
        ],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def embedding(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """The vector of a text, of length 1."""
    counts = [0.0] * dimensions
    flat = " ".join(text.lower().split())
    for length in range(1, _LONGEST_GROUP + 1):
        for start in range(len(flat) - length + 1):
            checksum = zlib.crc32(flat[start : start + length].encode("utf-8", "replace"))
            counts[checksum % dimensions] += 1.0 if checksum >> 31 else -1.0
    size = math.sqrt(sum(count * count for count in counts)) or 1.0
    return [count / size for count in counts]


def _texts(given: object) -> list[str]:
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not 1 <= len(texts) <= _MOST_TEXTS:
        raise BadEmbeddingRequest(f"input is a text or a list of 1 to {_MOST_TEXTS} texts")
    if not all(isinstance(text, str) and text for text in texts):
        raise BadEmbeddingRequest("every input is a text that is not empty")
    return texts
