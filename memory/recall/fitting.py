"""Drops hits that do not fit the question. Pure.

Talk is told generously: a line often answers the one before it and shares no word with the
question. What one person stated line by line, nobody asking, stands by itself: there a hit without
a word of the question, or far behind the best, is about something else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memory.recall.passages import Passage, content_words
from memory.text import has_han

# In a place of no more turns whatever shares a word is kept.
_FEW = 20
# Below this even the best shares a common word at most.
LEAST = 3.5
_OF_BEST = 0.7
_LONG_ANSWER = 40  # characters; a shorter one only says that it was heard
_ENDING = 2  # characters of a Latin word of six and more that its other forms may not share
_SHORT_WORD = re.compile(r"\b[a-z]{2}\b|\b\d+\b")
_TELLS_NOTHING = frozenset(
    "is am be do to of in on at by as an my me we us he it or if so up no go".split()
)


def fitting(passages: Sequence[Passage], question: str) -> Sequence[Passage]:
    """Returns those of `passages` (best first, by words) that fit `question`; none where nothing
    does.

    Only where they are plain statements in a Latin script by one person whom the question does not
    name, in a place of more than a few turns.
    """
    words = _own_words(question)
    if not words or not _are_statements(passages, question):
        return passages
    sharing = [one for one in passages if _shares(one, words)]
    best = max((one.score for one in sharing), default=0.0)
    if best < LEAST:
        return []
    return [one for one in sharing if one.score >= _OF_BEST * best]


def _are_statements(passages: Sequence[Passage], question: str) -> bool:
    authors = {one.actor_name for one in passages}
    if len(authors) != 1 or content_words(authors.pop()) & content_words(question):
        return False
    return all(one.among > _FEW and _is_statement(one) for one in passages)


def _is_statement(one: Passage) -> bool:
    around = f"{one.question}{one.before}{one.after}"
    asks = "?" in around or "？" in around
    return not asks and len(one.answer) <= _LONG_ANSWER and not has_han(one.question)


def _shares(one: Passage, words: frozenset[str]) -> bool:
    text = f"{one.question} {one.answer}".lower()
    return any(word in text for word in words)


def _own_words(question: str) -> frozenset[str]:
    short = set(_SHORT_WORD.findall(question.lower())) - _TELLS_NOTHING
    stems = (word[:-_ENDING] if len(word) > 5 else word for word in content_words(question))
    return frozenset(short.union(stems))
