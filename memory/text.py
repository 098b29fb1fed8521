"""Cleans texts before they are stored, and marks foreign text in prompts. Pure.

In a prompt only our own lines start at the margin. Foreign text follows a label, and each of
its further lines is indented or starts with "> ", so it cannot imitate a heading, a quotation
or another speaker."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any
from unicodedata import category, east_asian_width

import orjson

_JOINERS = "\u200c\u200d"  # they hold emoji and some scripts together
HAN = "\u3400-\u9fff"

# The escape of U+0000, and not an escaped backslash before "u0000".
_ESCAPED_NUL = "\\u0000"
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_HAN_RUN = re.compile(f"[{HAN}]+")

NAMELESS = "someone"
FOREIGN_MARGIN = "    "

# Every reader of a prompt may take one of these for the colon or bracket that ends a label.
_LABEL_MARKS = str.maketrans({**dict.fromkeys(":：︰﹕꞉∶ː˸", "·"), **dict.fromkeys("[［", "(")})
_LINE_ENDS = str.maketrans({end: f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"})
_QUOTATION_MARKS = ("[", ">", FOREIGN_MARGIN)


def storable(text: str) -> str:
    """`text` as Postgres can keep it: no NUL, no lone surrogates (they become "?")."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")


def display_width(line: str) -> int:
    """The width of a line on a screen: a Chinese character takes two columns."""
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in line)


def as_json(value: object) -> str:
    """`value` as JSON text that Postgres can keep, without spaces."""
    try:
        text = orjson.dumps(value).decode()
    except TypeError:  # a lone surrogate, or a number beyond 64 bits
        text = json.dumps(storable_value(value), ensure_ascii=False, separators=(",", ":"))
    has_nul = _ESCAPED_NUL in text and _NUL.search(text)  # the pattern alone is fifty times slower
    return as_json(storable_value(value)) if has_nul else text


def storable_value(value: object) -> Any:
    """`value` with each text in it as Postgres can keep it."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, Mapping):
        return {storable_value(key): storable_value(item) for key, item in value.items()}
    return [storable_value(item) for item in value] if isinstance(value, list | tuple) else value


def one_line(text: str) -> str:
    """`text` with every run of white space, line breaks too, as one space."""
    return " ".join(text.split())


def visible_line(text: str) -> str:
    """`text` as one line without characters that nobody sees, such as those that turn the direction
    of writing around. What joins emoji stays."""
    visible_characters = (
        one for one in one_line(text) if one in _JOINERS or category(one) not in ("Cc", "Cf")
    )
    return one_line("".join(visible_characters))


def has_han(text: str) -> bool:
    """Whether any Chinese character stands in `text`."""
    return _HAN_RUN.search(text) is not None


def han_pairs(text: str) -> Iterator[str]:
    """The pairs of neighbouring Chinese characters: the words of a text that has no spaces. A
    character by itself is given alone."""
    for run in _HAN_RUN.findall(text):
        if len(run) == 1:
            yield run
        yield from map("".join, pairwise(run))


_LABEL_MARKS |= str.maketrans(dict.fromkeys("]］", ")"))


@lru_cache(maxsize=1024)  # each line of a prompt names somebody
def speaker_label(name: str) -> str:
    """A name as it stands in front of somebody's words: one line, no colon, no square bracket.

    Labels and marks of ours contain one of these, so no name can pass for them.
    """
    visible = "".join(map(_visible_character, one_line(name))).translate(_LABEL_MARKS)
    return one_line(visible) or NAMELESS


def labelled_text(author: str, text: str) -> str:
    """`author: text` with further lines indented. `author` is a result of `speaker`."""
    return f"{author}: {indented_text(text.strip())}"


def indented_text(text: str) -> str:
    """`text` with every line but the first indented. Line ends of all kinds become newlines."""
    return f"\n{FOREIGN_MARGIN}".join(text.splitlines())


def unlabelled_text(text: str) -> str:
    """The words of the only person who writes in a chat: nothing in front of them.

    Only lines that could pass for a quotation of ours, or that are indented already, are indented.
    """
    return "\n".join(
        FOREIGN_MARGIN + line if line.startswith(_QUOTATION_MARKS) else line
        for line in text.splitlines()
    )


def original_text(visible_text: str) -> str:
    """The text that `continued` or `unlabelled` shows."""
    return "\n".join(line.removeprefix(FOREIGN_MARGIN) for line in visible_text.splitlines())


def quoted_text(text: str) -> str:
    """The lines of `text`, each after "> "."""
    return "\n".join(f"> {line}" for line in text.strip().splitlines() or [""])


def json_line(value: object) -> str:
    """`value` as JSON on one line, whatever a reader takes for the end of a line."""
    return json.dumps(value, ensure_ascii=False).translate(_LINE_ENDS)


def _visible_character(character: str) -> str:
    is_hidden = unicodedata.category(character) in ("Cc", "Cf") and character not in _JOINERS
    return "" if is_hidden else character
