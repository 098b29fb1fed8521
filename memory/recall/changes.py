"""Which of the things that were said a later one replaces. Pure.

A statement gives a matter a value: “the weekly meeting is on Friday”, “周会改到周五”. A later one
replaces the value: of a matter of one's own the same person's, of any other one in the same chat.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from memory.recall.passages import Passage
from memory.text import has_han, one_line

_SENTENCE = re.compile(r"[^。！!？?；;\n.]+(?:\.(?=\S)[^。！!？?；;\n.]*)*[。！!？?；;.]?")
_ASKED = re.compile(
    r"[？?]$|[吗嗎呢]$|^(?:what|when|where|who|which|why|how|is|are|was|were)\b", re.I
)
_OPENING = re.compile(
    r"^(?:please\s+|ok(?:ay)?,?\s+|so\s+|and\s+|but\s+|from\s+now\s+on,?\s+|as\s+of\s+\w+,?\s+)*"
    r"(?:(?:remember|note|update|correction|fyi|actually|by\s+the\s+way)\b[:,]?\s*(?:that\s+)?)*",
    re.I,
)
_OPENING_ZH = re.compile(
    r"^(?:请|帮我)?(?:记住|记一下|更正|更新|注意|其实|对了|另外|从今天起)?[一下：:，,\s]*"
)
_VALUE = re.compile(
    r"^(?P<matter>[^,;:]{2,80}?)\s+(?:(?:has|have|had|is|are|was|were|will|got|now)\s+)*"
    r"(?:(?:been|be|now)\s+)*"
    r"(?:(?:moved|changed|switched|rescheduled|postponed|renamed)\s+to|is|are|was|were|be|now)\s+"
    r"(?P<value>.+)$",
    re.I,
)
_VALUE_ZH = re.compile(
    r"^(?P<matter>[^，,：:]{2,24}?)(?:现在|目前|已经|已)?"
    r"(?:定在|定于|[改换变调挪移](?:整)?[到在为成叫]|(?:推迟|提前|调整|更改|变更)[到为至]|是|叫|在|：|:)"
    r"(?P<value>.+)$"
)
_NO_MATTER = re.compile(
    r"\b(?:the|a|an|our|new|current|currently|now|my)\b|[我们]的?|咱们?的?|新的?|现在的?|目前的?|的",
    re.I,
)
_PERSONAL = re.compile(r"\b(?:my|i|mine)\b|我(?!们)", re.I)
_POINTING = re.compile(
    r"(?:it|this|that|these|those|there|here|he|she|they|we|you|i|who|what|everything|all"
    r"|[这那它他她][个些里边]?|什么|谁)",
    re.I,
)


@dataclass(frozen=True, slots=True)
class _Statement:
    matter: str
    value: str
    is_personal: bool


def replaced(ordered: Sequence[Passage]) -> Mapping[str, str]:
    """Of passages in the order of time: turn_id -> the `asked_at` at which all that the turn states
    was replaced, or "" for a turn that replaced another and holds."""
    latest: dict[tuple[str, ...], tuple[str, str, str]] = {}
    until: dict[str, str] = {}
    holds: set[str] = set()
    for passage in reversed(ordered):
        ends = []
        for statement in _statements(passage.question):
            key = _key(statement, passage)
            newer = latest.setdefault(key, (passage.turn_id, passage.asked_at, statement.value))
            changed = newer[0] != passage.turn_id and newer[2] != statement.value
            ends.append(newer[1] if changed else "")
            if changed:
                holds.add(newer[0])
        if ends and all(ends):
            until[passage.turn_id] = min(ends)
    return {**dict.fromkeys(holds, ""), **until}


def _key(statement: _Statement, passage: Passage) -> tuple[str, ...]:
    if statement.is_personal:
        return ("person", passage.actor_id or "", statement.matter)
    return ("chat", passage.chat_id, statement.matter)


def _statements(text: str) -> Iterator[_Statement]:
    """What the sentences of `text` state; each by its first clause."""
    for sentence in map(one_line, _SENTENCE.findall(text)):
        if not _ASKED.search(sentence):
            opening, shape = (_OPENING_ZH, _VALUE_ZH) if has_han(sentence) else (_OPENING, _VALUE)
            match = shape.match(opening.sub("", sentence).rstrip("。！!；;."))
            matter = " ".join(_NO_MATTER.sub(" ", match["matter"]).lower().split()) if match else ""
            if match and len(matter) > 1 and not _POINTING.fullmatch(matter):
                is_personal = bool(_PERSONAL.search(match["matter"]))
                yield _Statement(matter, one_line(match["value"]).lower(), is_personal)
