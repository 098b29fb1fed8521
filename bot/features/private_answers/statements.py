"""What of a message tells something: what it asks, or orders, tells nothing. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.listening.questions import is_question
from bot.text.slash_commands import parse

# A text is compared in parts of so many characters.
PART_CHARS = 600

_SENTENCE = re.compile(r"(?:[^.。!！?？；;\n]|[.](?=\S))+[.。!！?？；;\n]*")
_ASKED = re.compile(r"[?？][\s)）”\"'’~～!！]*$|(?:[吗呢么]|咋样?)[\s。.!！~～]*$")
_KEEPS = re.compile(
    r"^\W*(?:(?:can|could|would) you |please )*(?:remember|note|keep in mind)(?: that\b|\s*[:：])"
    r"|^\W*(?:do not|don['’]t)\b|^\W*(?:能|可以)?(?:请|麻烦)?(?:你)?(?:帮我)?记[住着下一]",
    re.IGNORECASE,
)
# “When the lift is stuck call …” tells, “when is the launch” asks.
_CLAUSE = re.compile(
    r"^(?:when|where) (?!is\b|are\b|was|were|do|did|does|can|could|will|would|shall|should|ha)"
    r"(?:\S+ ){4}",
    re.IGNORECASE,
)


def statements(message: str) -> str:
    """The sentences of `message` that ask nothing; "" of a command."""
    if parse(message.strip()):
        return ""
    return "".join(one for one in _SENTENCE.findall(message) if not _asks(one.strip())).strip()


def questions(message: str) -> str:
    """The sentences of `message` that ask something; all of it where none is seen to."""
    sentences = " ".join(one.strip() for one in _SENTENCE.findall(message) if _asks(one.strip()))
    return sentences or message


def parts(text: str) -> Iterator[str]:
    """Neighbouring sentences of `text` together, each part beginning with the end of the one
    before."""
    part: list[str] = []
    for sentence in _SENTENCE.findall(text):
        if part and sum(map(len, part)) + len(sentence) > PART_CHARS:
            yield "".join(part).strip()
            part = part[-1:] if len(part) > 1 else []
        part.append(sentence[:PART_CHARS])
    if "".join(part).strip():
        yield "".join(part).strip()


def _asks(sentence: str) -> bool:
    if _KEEPS.search(sentence) or (_CLAUSE.search(sentence) and not _ASKED.search(sentence)):
        return False
    return bool(_ASKED.search(sentence)) or is_question(sentence)
