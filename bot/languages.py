"""The two languages: which of them a text is answered in, and sentences in both. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from memory.text import has_han

Language = Literal["zh", "en"]


def language_of(texts: Iterable[str]) -> Language:
    """Chinese as soon as one of the texts has a Chinese character."""
    return "zh" if any(map(has_han, texts)) else "en"


@dataclass(frozen=True, slots=True)
class Sentence:
    """The same sentence in both languages."""

    en: str
    zh: str

    def said(self, language: Language) -> str:
        return self.zh if language == "zh" else self.en
