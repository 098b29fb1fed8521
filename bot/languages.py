"""Which of the two languages a text is answered in. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

Language = Literal["zh", "en"]


def has_chinese(text: str) -> bool:
    return any("\u3400" <= character <= "\u9fff" for character in text)


def language_of(texts: Iterable[str]) -> Language:
    """Chinese as soon as one of the texts has a Chinese character."""
    return "zh" if any(map(has_chinese, texts)) else "en"
