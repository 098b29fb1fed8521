"""Where code stands that is closed: in it, marks of models are somebody's example. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

_CODE = re.compile(
    r"^[ \t]*(?P<fence>`{3,}+|~{3,}+)[^\n]*\n.*?^[ \t]*(?P=fence)[`~]*[ \t]*$"
    r"|(?<!`)(?P<ticks>`++)(?:(?!\n[ \t]*\n).)+?(?<!`)(?P=ticks)(?!`)",
    re.DOTALL | re.MULTILINE,
)


def outside_code(pattern: re.Pattern[str], text: str, *, complete: bool) -> Iterator[re.Match[str]]:
    """The matches of `pattern` that do not begin in closed code.

    At the end of an unfinished text nothing is sure to be closed.
    """
    spans = [match.span() for match in _CODE.finditer(text)] if _may_hold_code(text) else []
    closed_spans = [(start, end) for start, end in spans if complete or end < len(text)]
    for match in pattern.finditer(text):
        if not any(start <= match.start() < end for start, end in closed_spans):
            yield match


def is_open(text: str) -> bool:
    """Whether code may have begun in `text` that is not closed in it."""
    return _may_hold_code(_CODE.sub("", text))


def _may_hold_code(text: str) -> bool:
    return "`" in text or "~~~" in text
