"""Which of the earlier messages that an answer was given it was made with. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from memory.recall.passages import Passage, content_words

_NUMBER = re.compile(r"\d+")
_FEW = 5  # words of an answer, of which one is enough
_ENDING = 2  # characters of a Latin word of six and more that its other forms may not share


def used_in(answer: str, passages: Sequence[Passage], *, question: str) -> tuple[Passage, ...]:
    """Those of `passages` that share with `answer` what `question` does not say. A line that the
    bot said then and says again, such as a notice, tells nothing."""
    question_words = _words([question])
    return tuple(one for one in passages if _is_used(answer, one, question_words))


def sources_of(
    answer: str,
    prompt_passages: Sequence[Passage],
    tool_passages: Sequence[Passage],
    *,
    question: str,
) -> list[Passage]:
    """The passages that an answer names as its sources, oldest first: of those that its prompt
    `prompt_passages` the ones it uses, and what its tools `tool_passages`. Of imported messages
    found, which are single lines, only those it uses, where it uses any."""
    imported_passages = [one for one in tool_passages if one.source]
    named_passages = [
        *used_in(answer, prompt_passages, question=question),
        *(one for one in tool_passages if not one.source),
        *(used_in(answer, imported_passages, question=question) or imported_passages),
    ]
    by_turn = {one.turn_id: one for one in named_passages}.values()
    return sorted(by_turn, key=lambda one: (one.asked_at, one.message_id))


def _is_used(answer: str, passage: Passage, question_words: frozenset[str]) -> bool:
    passage_lines, answer_lines = _lines(passage.answer), _lines(answer)
    own = _words(line for line in answer_lines if line not in passage_lines) - question_words
    shared_words = own & _words(
        [passage.question, *(line for line in passage_lines if line not in answer_lines)]
    )
    return len(shared_words) >= (1 if len(own) <= _FEW else 2)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]


def _words(texts: Iterable[str]) -> frozenset[str]:
    text = "\n".join(texts)
    return frozenset(map(_stem, content_words(text) | set(_NUMBER.findall(text))))


def _stem(word: str) -> str:
    return word[:-_ENDING] if len(word) > 5 and word.isascii() and word.isalpha() else word
