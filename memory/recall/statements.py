"""Reads what sentences state: a subject, a relation, a value, and whether something changed. Pure.

The forms are those in which people give a matter a value: “the weekly meeting is on Friday”, “I
moved to Lisbon”, “Nora leads the Atlas project”, “周会改到周五”, “项目由韩梅负责”. A sentence
of any other form states nothing that a later one could replace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory.recall.chinese_statements import CORRECTS as CORRECTS_ZH
from memory.recall.chinese_statements import chinese_statement
from memory.recall.english_statements import CORRECTS, english_statement
from memory.recall.stated_fact import StatedFact
from memory.text import has_han, one_line

# No sentence ends after an initial or an abbreviation.
_SHORTENED = r"(?<=[A-Z]\.)|(?<=\b(?:Mr|Dr|St|Jr|Co)\.)|(?<=\b(?:Mrs|Inc|Ltd)\.)"
_SENTENCE = re.compile(
    rf"[^。！!？?；;\n.]+(?:\.(?:(?=\S)|{_SHORTENED})[^。！!？?；;\n.]*)*[。！!？?；;.]?"
)
_ASKED = re.compile(
    r"[？?]$|[吗嗎呢]$|^(?:what|when|where|who|which|why|how|is|are|was|were|do|does|did|can|could)\b",
    re.I,
)
_CLAUSE_END = re.compile(r"[，；;]|,(?!\d)|\ -\ | — |(?<=\w)\ (?:and|but|so|because)\ ")


def statements(text: str) -> Iterator[StatedFact]:
    """What the sentences of `text` state. Questions state nothing."""
    for sentence in map(one_line, _SENTENCE.findall(text)):
        if _ASKED.search(sentence):
            continue
        chinese = has_han(sentence)
        is_correction = bool((CORRECTS_ZH if chinese else CORRECTS).match(sentence))
        bare = sentence.rstrip("。！!；;.").strip()
        for clause in _clauses(bare):
            read = (
                chinese_statement(clause, is_correction)
                if chinese
                else english_statement(clause, is_correction)
            )
            if read:
                yield read


def _clauses(sentence: str) -> list[str]:
    return [part.strip() for part in _CLAUSE_END.split(sentence) if part.strip()]
