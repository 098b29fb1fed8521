"""The two languages: which of them a text is answered in, and sentences in both. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from memory.text import has_han

Language = Literal["zh", "en"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")

_NOT_SAID = re.compile(
    r"(?<!\S)\S+://\S+|\[[a-z ]+(?::[^\[\]]*)?\]"
)  # links; "[image]", "[file: a.pdf]"
_WORD = re.compile(r"(?<![@\w])[^\W\d_]")  # not a mention's name


def language_of(texts: Iterable[str]) -> Language:
    """Chinese as soon as one of the texts has a Chinese character."""
    return "zh" if any(map(has_han, texts)) else "en"


def says_words(text: str) -> bool:
    """Whether a text has words to tell its language by, beside mentions (@name),
    links and what stands for a picture or a file."""
    return _WORD.search(_NOT_SAID.sub("", text)) is not None


def join_list(parts: Iterable[str], language: Language) -> str:
    """“one, two”."""
    return ("、" if language == "zh" else ", ").join(parts)


@dataclass(frozen=True, slots=True)
class Sentence:
    """The same sentence in both languages."""

    en: str
    zh: str

    def said(self, language: Language) -> str:
        return self.zh if language == "zh" else self.en
