"""The two languages: which of them is spoken in a text, and sentences in both. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from memory.text import HAN, has_han

Language = Literal["zh", "en"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")

_LINK = r"[^\s<>\"'|，。；、！？（）《》【】“”]{1,2000}"  # no space stands around it in Chinese
_NOT_SAID = re.compile(
    r"```.{0,20000}?(?:```|\Z)|`[^`\n]{1,300}`"  # code
    rf"|(?<![a-zA-Z0-9])(?:[a-zA-Z][a-zA-Z0-9+.-]{{0,20}}://|www\.){_LINK}"
    r"|\[[a-z ]+(?::[^\[\]]*)?\]"  # "[image]", "[file: a.pdf]"
    r"|(?<![^\W_])@\S+"
    r"|^[>＞][^\n]*"  # what is quoted
    r"|“[^“”\n]{1,300}”|\"[^\"\n]{1,300}\"|「[^「」\n]{1,300}」|『[^『』\n]{1,300}』|《[^《》\n]{1,300}》",
    re.DOTALL | re.MULTILINE,
)
_HAN_CHARACTER = re.compile(f"[{HAN}]")
_OTHER_WORD = re.compile(f"(?:(?![{HAN}])[^\\W\\d_])+")
# What makes a sentence of the words around it tells more than they do.
_FRAME = frozenset(
    "a an and are at be been but by can could did do does for from had has have he her his how i if"
    " in is it its me my of on or our please she should so that the their them there they this to"
    " us was we were what when where which who why will with would you your".split()
)
_FRAME_ZH = frozenset("的了是吗呢吧么啊在有不我你您他她们这那什怎哪谁几请帮把给和就都也要会能被让")
_FRAME_WEIGHT = 3


def language_of(texts: Iterable[str], names: Iterable[str] = ()) -> Language:
    """The language of most of what is said in the texts; English where nothing is."""
    return own_language("\n".join(texts), names) or "en"


def own_language(text: str, names: Iterable[str] = ()) -> Language | None:
    """The language of most words of `text`; None where it has none of its own beside `names`,
    mentions, quotations, links and code."""
    return _language_said(text, tuple(name for name in names if name and name in text))


@lru_cache(maxsize=256)  # each step of a turn asks about the same question
def _language_said(text: str, names: tuple[str, ...]) -> Language | None:
    own_words = _own_words(text, names)
    chinese = sum(
        [_FRAME_WEIGHT if one in _FRAME_ZH else 1 for one in _HAN_CHARACTER.findall(own_words)]
    )
    words = _OTHER_WORD.findall(own_words)
    other = sum([_FRAME_WEIGHT if word.lower() in _FRAME else 1 for word in words])
    if not chinese and not other:
        return None
    return "zh" if chinese >= other else "en"


def last_own_language(texts: Sequence[str], names: Iterable[str] = ()) -> Language | None:
    """That of the last text that tells one. An English command does not: people of every language
    write those."""
    names = tuple(names)
    for text in reversed(texts):
        tongue = own_language(text, names)
        if tongue == "zh" or (tongue and not text.startswith(("/", "／"))):
            return tongue
    return None


def _own_words(text: str, names: Iterable[str]) -> str:
    for name in sorted(names, key=len, reverse=True):
        edge = "" if has_han(name) else r"(?![^\W_])"
        before = "@?" if has_han(name) else r"(?:@|(?<![^\W_]))"
        text = re.sub(f"{before}{re.escape(name)}{edge}", " ", text)
    return _NOT_SAID.sub(" ", text)


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
