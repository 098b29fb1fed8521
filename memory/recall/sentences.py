"""Reads what the sentences of a text state, clause by clause. Pure.

Questions state nothing, and neither does what only holds under a condition or is only supposed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from memory.recall.english_statements import CORRECTS_EN, read_english_clause
from memory.recall.stated_facts import CORRECTS_ZH, StatedFact, read_chinese_clause
from memory.text import has_han, one_line

# No sentence ends after an initial or an abbreviation.
_SHORTENED = r"(?<=[A-Z]\.)|(?<=\b(?:Mr|Dr|St|Jr|Co)\.)|(?<=\b(?:Mrs|Inc|Ltd)\.)"
_SENTENCE = re.compile(
    rf"[^。！!？?；;\n.]+(?:\.(?:(?=\S)|{_SHORTENED})[^。！!？?；;\n.]*)*[。！!？?；;.]?"
)
_QUESTION = re.compile(
    r"[？?]$|[吗嗎呢]$|^(?:what|when|where|who|which|why|how|is|are|was|were|do|does|did|can|could)\b",
    re.I,
)
_CONDITION = re.compile(
    r"(?:(?:and|but|so|then|only) )?(?:if|unless|in case|provided|suppose)\b"
    r"|(?:但|不过|那)?(?:如果|要是|假如|假设|万一|除非|若[是要])|.+的话$",
    re.I,
)
_SUPPOSES = re.compile(
    r"\b(?:might|(?-i:may)|could|would|maybe|perhaps|possibly|wish|suggest|propose"
    r"|rather|prefers?)\b|['’]d (?:like|rather|prefer)|可能|也许|或许|说不定|要不"
    r"|建议|提议|希望|就好了|[我他她们](?:更|也)?想(?!到|起)",
    re.I,
)
_NOT_ASKED = "".join(
    rf"(?<!\b{word})" for word in "know check ask see sure me us as even what".split()
)
_CLAUSE_END = re.compile(
    r"[，；;]|,(?!\d)|\ -\ | — |(?<=\w)\ (?:and|but|so|because)\ "
    rf"|(?<=\w){_NOT_ASKED}\ (?=(?:if|unless|in case|provided)\ )"  # “moves to 9 May if QA agrees”
)
# A line is read in each turn whose window or recall holds it.
_SHORT = 1000


def stated_facts(text: str) -> tuple[StatedFact, ...]:
    """What the sentences of `text` state. Questions state nothing."""
    return _known_facts(text) if len(text) <= _SHORT else tuple(_read_facts(text))


def _read_facts(text: str) -> Iterator[StatedFact]:
    for sentence in map(one_line, _SENTENCE.findall(text)):
        if _QUESTION.search(sentence):
            continue
        chinese = has_han(sentence)
        is_correction = bool((CORRECTS_ZH if chinese else CORRECTS_EN).match(sentence))
        bare = sentence.rstrip("。！!；;.").strip()
        for clause in _stated_clauses(bare):
            read = (
                read_chinese_clause(clause, is_correction)
                if chinese
                else read_english_clause(clause, is_correction)
            )
            if read:
                yield read


def supposes(text: str) -> bool:
    """Whether `text` only says what may be, or under a condition: “launch might slip to 9 May”."""
    sentences = filter(None, map(_clauses, map(one_line, _SENTENCE.findall(text))))
    return any(_has_condition(clauses) or _SUPPOSES.search(clauses[0]) for clauses in sentences)


def _stated_clauses(sentence: str) -> list[str]:
    clauses = _clauses(sentence)
    if _has_condition(clauses):
        return []
    return [clause for clause in clauses if not _SUPPOSES.search(clause)]


def _has_condition(clauses: Sequence[str]) -> bool:
    return any(map(_CONDITION.match, clauses))


def _clauses(sentence: str) -> list[str]:
    return [part.strip() for part in _CLAUSE_END.split(sentence) if part.strip()]


@lru_cache(maxsize=512)
def _known_facts(text: str) -> tuple[StatedFact, ...]:
    return tuple(_read_facts(text))
