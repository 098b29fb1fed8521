"""Whether what a person told elsewhere says more than the answer that was given in a group. Pure.

What they told has to be about what was asked, at least as much as what the group was told, and to
hold a detail of the kind that was asked for which neither the answer nor the group has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bot.features.private_answers.details import (
    answers,
    details,
    is_about_bot,
    names_within,
    needs_memory,
    nicknames,
    wanted,
)
from bot.listening.patterns import has_han
from memory.tables.private import Terms

# How much of a question has to stand in a text, and how much of its telling words.
_ENOUGH = 0.55
_ENOUGH_TELLING = 0.5
# What a word of a question is worth, besides if it is telling, besides if it is a name.
_WORTH, _TELLING, _NAME = 1.0, 1.0, 1.0
_LIGHT = frozenset("am use need want get got com mak tak put look find giv keep".split())
_ASKING = re.compile("[谁哪几吗怎什]")
_MANY = 3  # so many everyday words say something, too
_SAME_FROM = 4  # so many first characters make two Latin words forms of one

_BEFORE_HAN = r"([\w ]{{2,6}}){}"
_BEFORE_LATIN = r"\b(\w[\w-]+)(?:['’]s)?\s+{}"
_DEFINED = r"{}\w*\s*(?:[:：=]|\b(?:is|are|was|were)\b|[是为在有])"


@dataclass(frozen=True, slots=True)
class Weighed:
    """A text with its terms."""

    text: str
    terms: Terms

    @property
    def words(self) -> frozenset[str]:
        return self.terms.telling | self.terms.everyday

    def has(self, word: str) -> bool:
        """Whether the word stands in it, in any form; a Chinese one anywhere."""
        if has_han(word):
            return word in self.text
        return any(_is_same(word, other) for other in self.words)


def says_more(
    question: Weighed,
    private_texts: Sequence[Weighed],
    answer: str = "",
    group_texts: Sequence[Weighed] = (),
) -> bool:
    """Whether any of `private_texts` says more to `question` than `answer`, which was made from
    `group_texts`."""
    if not needs_memory(question.text):
        return False
    if is_about_bot(question.text) and not question.terms.telling:
        return False
    least = max([_ENOUGH, *(score(question, one) for one in group_texts)])
    known_texts = [question, *group_texts]
    return any(
        score(question, one) >= least and _has_more(question, one, known_texts, answer)
        for one in private_texts
    )


def score(question: Weighed, text: Weighed) -> float:
    """How much of `question` stands in `text`, 0 to 1; 0 where the text is about another matter."""
    people = nicknames(question.text)
    telling = frozenset(w for w in question.terms.telling if not _ASKING.search(w)) | people
    question_words = telling | (question.terms.everyday - _LIGHT)
    shares = {word: _share(word, question, text) for word in question_words}
    shared_words = frozenset(word for word, share in shares.items() if share == 1)
    if sum(shares[word] for word in telling) < _ENOUGH_TELLING * len(telling):
        return 0.0
    if not _agrees(question, text) or _is_of_another(question, text, shared_words):
        return 0.0
    if question_words == shared_words and not _is_said_of(question, question_words, text):
        return 0.0
    names = people | names_within(question.text)
    worth = {word: _WORTH + (_TELLING if word in telling else 0) for word in question_words}
    of_names = _NAME * len(names)  # without them the text would not agree
    whole = sum(worth.values()) + of_names
    return (sum(worth[w] * shares[w] for w in question_words) + of_names) / whole if whole else 0.0


def _share(word: str, question: Weighed, text: Weighed) -> float:
    """How much of the word stands in the text: a half of a pair of Chinese characters whose first
    one ends a word there (仪收 of 投影仪收在哪里)."""
    if text.has(word):
        return 1.0
    if len(word) == 2 and has_han(word):
        before = question.text[max(0, question.text.find(word) - 1) :][:2]
        return 0.5 if before[1:] == word[0] and has_han(before[0]) and before in text.text else 0.0
    return 0.0


def _agrees(question: Weighed, text: Weighed) -> bool:
    """Whether the text has every day, number and name of the question."""
    lower = text.text.lower()
    names = names_within(question.text) | nicknames(question.text)
    return details(question.text) <= details(text.text) and all(name in lower for name in names)


def _is_said_of(question: Weighed, question_words: frozenset[str], text: Weighed) -> bool:
    """Of a question of one word (“wifi?”) whether the text says what that is."""
    return (
        len(question_words) != 1
        or wanted(question.text) != "thing"
        or any(
            re.search(_DEFINED.format(re.escape(word)), text.text, re.IGNORECASE)
            for word in question_words
        )
    )


def _is_of_another(question: Weighed, text: Weighed, shared_words: Iterable[str]) -> bool:
    """Whether, before a word that they share, both name what the other does not: 上海办公室 and
    北京办公室."""
    return any(
        (asked := _named_before(word, question))
        and (told := _named_before(word, text))
        and (asked & question.terms.telling or told & text.terms.telling)
        and not any(map(text.has, asked))
        and not any(map(question.has, told))
        for word in shared_words
    )


def _named_before(word: str, text: Weighed) -> frozenset[str]:
    """The words that stand directly before `word`."""
    before = _BEFORE_HAN if has_han(word) else _BEFORE_LATIN
    matches = re.findall(before.format(re.escape(word)), text.text.lower())
    return frozenset(one for one in text.words if any(one in words for words in matches))


def _has_more(
    question: Weighed, private_text: Weighed, known_texts: Sequence[Weighed], answer: str
) -> bool:
    """Whether it has a detail of the kind that was asked for and that is not known."""
    known_words = "\n".join([answer, *(one.text for one in known_texts)])
    lower = known_words.lower()
    new = {
        word for word in private_text.terms.telling
        if word not in lower and not any(one.has(word) for one in known_texts)
    }  # fmt: skip
    kind = wanted(question.text)
    if (
        kind in ("thing", "place")
        and len([word for word in private_text.words if word not in lower]) >= _MANY
    ):
        return True
    return answers(kind, private_text.text, known_words, frozenset(new))


def _is_same(one: str, other: str) -> bool:
    if one == other:
        return True
    if not (one.isascii() and other.isascii() and one.isalpha() and other.isalpha()):
        return False
    least = min(len(one), len(other))
    return least >= _SAME_FROM and one[:least] == other[:least]
