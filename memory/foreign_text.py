"""How a prompt shows what people, files and tools wrote. Pure.

In a prompt only our own lines start at the margin. Foreign text follows a label, and each of its
further lines is indented or starts with "> ". So a text cannot imitate a heading, a quotation, or
a line of somebody else, whatever it contains.
"""

from __future__ import annotations

import json
import unicodedata
from functools import lru_cache

from memory.text import one_line

NAMELESS = "someone"
MARGIN = "    "

# Every reader of a prompt may take one of these for the colon or bracket that ends a label.
_LABEL_MARKS = str.maketrans({**dict.fromkeys(":：︰﹕꞉∶ː˸", "·"), **dict.fromkeys("[［", "(")})
_LABEL_MARKS |= str.maketrans(dict.fromkeys("]］", ")"))
_JOINERS = "\u200c\u200d"  # they hold emoji and some scripts together
_LINE_ENDS = str.maketrans({end: f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"})
_QUOTATION_MARKS = ("[", ">", MARGIN)


@lru_cache(maxsize=1024)  # each line of a prompt names somebody
def speaker(name: str) -> str:
    """A name as it stands in front of somebody's words: one line, no colon, no square bracket.

    Labels and marks of ours contain one of these, so no name can pass for them.
    """
    visible = "".join(map(_visible, one_line(name))).translate(_LABEL_MARKS)
    return one_line(visible) or NAMELESS


def spoken(author: str, text: str) -> str:
    """`author: text` with further lines indented. `author` is a result of `speaker`."""
    return f"{author}: {continued(text.strip())}"


def continued(text: str) -> str:
    """`text` with every line but the first indented. Line ends of all kinds become newlines."""
    return f"\n{MARGIN}".join(text.splitlines())


def unlabelled(text: str) -> str:
    """The words of the only person who writes in a chat: nothing in front of them.

    Only lines that could pass for a quotation of ours, or that are indented already, are indented.
    """
    return "\n".join(
        MARGIN + line if line.startswith(_QUOTATION_MARKS) else line for line in text.splitlines()
    )


def as_written(visible_text: str) -> str:
    """The text that `continued` or `unlabelled` shows."""
    return "\n".join(line.removeprefix(MARGIN) for line in visible_text.splitlines())


def quoted(text: str) -> str:
    """The lines of `text`, each after "> "."""
    return "\n".join(f"> {line}" for line in text.strip().splitlines() or [""])


def json_line(value: object) -> str:
    """`value` as JSON on one line, whatever a reader takes for the end of a line."""
    return json.dumps(value, ensure_ascii=False).translate(_LINE_ENDS)


def _visible(character: str) -> str:
    is_hidden = unicodedata.category(character) in ("Cc", "Cf") and character not in _JOINERS
    return "" if is_hidden else character
