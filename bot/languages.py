"""Which of the two languages a text is answered in. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from memory.text import has_han

Language = Literal["zh", "en"]


def language_of(texts: Iterable[str]) -> Language:
    """Chinese as soon as one of the texts has a Chinese character."""
    return "zh" if any(map(has_han, texts)) else "en"
