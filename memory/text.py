"""What is done to every text that people or models wrote before it is kept or told. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from unicodedata import category, east_asian_width

import orjson

_JOINERS = "\u200c\u200d"
HAN = "\u3400-\u9fff"

# The escape of U+0000, and not an escaped backslash before "u0000".
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_HAN_RUN = re.compile(f"[{HAN}]+")


def storable(text: str) -> str:
    """`text` as Postgres can keep it: no NUL, no lone surrogates (they become "?")."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")


def columns(line: str) -> int:
    """The width of a line on a screen: a Chinese character takes two columns."""
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in line)


def as_json(value: object) -> str:
    """`value` as JSON text that Postgres can keep, without spaces."""
    try:
        text = orjson.dumps(value).decode()
    except TypeError:  # a lone surrogate, or a number beyond 64 bits
        text = json.dumps(_storable(value), ensure_ascii=False, separators=(",", ":"))
    return as_json(_storable(value)) if _NUL.search(text) else text


def _storable(value: object) -> object:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, Mapping):
        return {_storable(key): _storable(item) for key, item in value.items()}
    return [_storable(item) for item in value] if isinstance(value, list | tuple) else value


def one_line(text: str) -> str:
    """`text` with every run of white space, line breaks too, as one space."""
    return " ".join(text.split())


def readable(text: str) -> str:
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
