"""Quotes what people said. English and Chinese share the marks: “…”, and within it ‘…’. Pure."""

from __future__ import annotations

import re

from memory.text import one_line

_LONGEST = 300
_CURLY = str.maketrans("“”", "‘’")
_STRAIGHT_PAIR = re.compile(r'"([^"\n]*)"')


def quote(words: str, most: int = _LONGEST) -> str:
    """`words` in quotation marks, on one line and cut after `most` characters."""
    return f"“{nest_quotations(shorten(words, most))}”"


def shorten(words: str, most: int) -> str:
    """`words` on one line of at most `most` characters, with “…” as the last where it was cut."""
    line = one_line(words)
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def nest_quotations(words: str) -> str:
    """`words` with the marks of a quotation within a quotation."""
    return _STRAIGHT_PAIR.sub(r"‘\1’", words).translate(_CURLY)
