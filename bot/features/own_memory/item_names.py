"""What facts and notes are called for people, who read no keys and no JSON. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from bot.text.catalogues import Catalogue
from bot.text.languages import Language, join_list
from memory.tables.items import Kind
from memory.text import has_han, one_line

say = Catalogue(__file__).say

_VALUE_CHARS: Mapping[Kind, int] = {"fact": 300, "note": 160, "summary": 300}
_NAME_CHARS = 60
_LONG_KEY = 30
_PLAIN = str.maketrans("`[]", "'()")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_JOINTS = re.compile(r"[\s_.\-]+")
_WORD = re.compile(r"\w+")


def short(text: str, limit: int = _NAME_CHARS) -> str:
    """`text` on one line, without marks that would open code or a link in the card."""
    line = one_line(text).translate(_PLAIN)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def name_of(kind: Kind, key: str, language: Language) -> str:
    """A fact by the words of its key, a note by its title."""
    name = key if kind == "note" else _words_of(key)
    return short(name) or say(f"unnamed-{kind}", language)


def line_of(kind: Kind, key: str, value: Any, language: Language) -> str:
    """An item in one line: its name and what is kept; only the latter where it says the name."""
    name, text = name_of(kind, key, language), value_of(kind, value, language)
    if not text:
        return name
    if not key or _says(text, name, whole=kind == "note"):
        return text
    return say("item", language, name=name, value=text)


def value_of(kind: Kind, value: Any, language: Language) -> str:
    """What is kept, or its first words."""
    return short(_spelled(value, language), _VALUE_CHARS[kind])


def _spelled(value: Any, language: Language) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return say("yes" if value else "no", language)
    if isinstance(value, list):
        return join_list([_spelled(one, language) for one in value], language)
    if isinstance(value, Mapping):
        pairs = ((_words_of(key), _spelled(one, language)) for key, one in value.items())
        return join_list([say("item", language, name=k, value=v) for k, v in pairs], language)
    return json.dumps(value, ensure_ascii=False)


def _words_of(key: str) -> str:
    """`favourite_colour`, `favouriteColour` → “favourite colour”."""
    apart = _CAMEL.split(key)
    text = " ".join([apart[0], *map(str.lower, apart[1:])])
    return _JOINTS.sub(" ", text).strip()


def _says(text: str, name: str, *, whole: bool) -> bool:
    """Whether the text begins with the name or, unless that is asked for as a `whole`, has all its
    words. A long key may end within a word."""
    text_words, name_words = _WORD.findall(text.lower()), _WORD.findall(name.lower())
    begins = " ".join(text_words).startswith(" ".join(name_words))
    if begins and (text_words[: len(name_words)] == name_words or len(name) > _LONG_KEY):
        return True
    if has_han(name):
        at = "".join(text_words).find("".join(name_words))
        return at == 0 if whole else at >= 0
    return not whole and set(name_words) <= set(text_words)
