"""How many of the earlier turns that were found a prompt tells. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from memory.recall.fitting import LEAST
from memory.recall.passages import Passage
from memory.recall.reading import words_told
from memory.tokens import estimate_tokens

MOST_TOLD = 10

# From this score on the best of them probably answers the question. A score is about the sum of the
# weights of the words in common: in a chat of hundreds of turns, of one rare word and of another.
_LIKELY_ANSWERED = 11.0
# Tokens: of what is told then, and where the answer is more likely not there.
_ROOM, _LITTLE_ROOM = 1500, 180
_LEAST, _LEAST_LIKELY = 5, 4
_MOST_HARDLY = 4  # that share a word


def worth_telling(passages: Sequence[Passage], *, by_meaning: bool = False) -> tuple[Passage, ...]:
    """Those of `passages`, best first, that a prompt tells: as many as there is room for.

    There is much room where they probably hold the answer. A question whose answer was never said
    finds something too, and its prompt does not grow for it. `by_meaning`: they need not share a
    word with the question, so a low score says nothing.
    """
    if passages and passages[0].score < LEAST and not by_meaning:
        matching = [passage for passage in passages if passage.score > 0]
        passages = [*matching[:_MOST_HARDLY], *passages[len(matching) :]]
    likely = bool(passages) and passages[0].score >= _LIKELY_ANSWERED
    room, least = (_ROOM, _LEAST) if likely else (_LITTLE_ROOM, _LEAST_LIKELY)
    chosen_passages: list[Passage] = []
    for passage in passages[:MOST_TOLD]:
        room -= estimate_tokens(words_told(passage))
        if room < 0 and len(chosen_passages) >= least:
            break
        chosen_passages.append(passage)
    return tuple(chosen_passages)
