"""A summary without a model: the sentences that matter most, Chinese and English. Pure.

Sentences compete by the weight of their terms and their position; what people asked to be
remembered, decisions, dates and numbers come first. The same input gives the same summary.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory.summary.text import SUMMARY_TOKENS, Line, cut, transcribed
from memory.text import han_pairs, has_han, one_line
from memory.tokens import token_cost

_SENTENCE_END = re.compile(r"(?<=[。！？；])|(?<=[.!?;])\s+|\n+")
_DAY = re.compile(r"^- \d{4}-\d{2}-\d{2} ")
_MARKUP = re.compile(r"^[\s>#*|+-]+|(?<![\s*|])[\s*|]+$")
_CODE_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_WORD = re.compile(r"[0-9]+|[0-9a-z_]{2,}")
_STOP_WORDS = frozenset(
    """the a an and or but of to in on at for from with by as is are was were be been do does did
    has have had it its this that these those we you they he she our your their my me us not so if
    then there here what when where who which how why can could will would should also""".split()
)
_EMPTY_BIGRAMS = frozenset(
    "我们 你们 他们 这个 那个 什么 一个 可以 没有 就是 还是 因为 所以 但是".split()
)

_REMEMBER = re.compile(
    r"记住|记得|记下|记一下|别忘|勿忘|务必|备忘|请注意"
    r"|\bremember\b|\bdon'?t forget\b|\bnote that\b|\bkeep in mind\b|\bfor the record\b",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"决定|确定|确认|同意|结论|敲定|改[为成到在]|定[在为于]|负责|截止|喜欢|不喜欢|讨厌|过敏|偏好|必须|不要"
    r"|\bdecid\w+|\bagreed?\b|\bconfirm\w*|\bresponsible\b|\bowns?\b|\bowner\b|\bdeadline\b|\bdue\b"
    r"|\bmoved? to\b|\bchanged? to\b|\bprefers?\b|\blikes?\b|\ballergic\b|\bmust\b|\bnever\b",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"\d{1,4}[-/.年]\d{1,2}|\d{1,2}\s*[月日号点]|[一二三四五六七八九十]{1,4}[月日号点]|(?:周|星期|礼拜)[一二三四五六日天]"
    r"|\b\d{1,2}:\d{2}\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b"
    r"|\b(?:january|february|march|april|may|june|july|august|september|october|november|december)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d")
_QUESTION = re.compile(r"[?？吗呢]\s*$")

_LONGEST_SENTENCE = 60  # tokens
_SAME = 0.8
_LEAST_SCORE = 0.5
_LEAST_OF_BOT = 5  # words; "Got it." and the like tell nothing


@dataclass(frozen=True, slots=True)
class _Sentence:
    """One line of the summary to be; `place` counts in order of time."""

    place: int
    shown: str
    text: str
    terms: frozenset[str]
    carried: bool = False
    by_bot: bool = False


def extract(earlier: str, lines: Sequence[Line], limit_tokens: int = SUMMARY_TOKENS) -> str:
    """The summary of `earlier` (a summary without references) and `lines`, a sentence per line, in
    order of time; at most `limit_tokens`."""
    sentences = list(_sentences(earlier, lines))
    frequency = Counter(term for sentence in sentences for term in sentence.terms)
    scores = {s.place: _score(s, frequency, len(sentences)) for s in sentences}
    telling = [s for s in sentences if scores[s.place] >= _LEAST_SCORE] or sentences
    ranked_sentences = sorted(telling, key=lambda s: (-scores[s.place], s.place))
    chosen_sentences: list[_Sentence] = []
    left = float(limit_tokens)
    for sentence in ranked_sentences:
        cost = token_cost(f"{sentence.shown}\n")
        if cost <= left and not any(_says_the_same(sentence, other) for other in chosen_sentences):
            chosen_sentences.append(sentence)
            left -= cost
    if not chosen_sentences and ranked_sentences:
        return cut(ranked_sentences[0].shown, limit_tokens)
    return "\n".join(s.shown for s in sorted(chosen_sentences, key=lambda s: s.place))


def _sentences(earlier: str, lines: Sequence[Line]) -> Iterator[_Sentence]:
    place = 0
    for visible_line in filter(None, map(str.strip, earlier.splitlines())):
        text = _DAY.sub("", visible_line)
        yield _Sentence(place, _short(visible_line), text, _terms(text), carried=True)
        place += 1
    for line in lines:
        for text in _split(line.text):
            visible_line = "- " + transcribed([Line(line.author, text, line.day)])
            yield _Sentence(place, visible_line, text, _terms(text), by_bot=line.by_bot)
            place += 1


def _split(text: str) -> Iterator[str]:
    """The sentences of a text without code and without marks of headings, lists and tables."""
    for part in _SENTENCE_END.split(_CODE_FENCE.sub("\n", text)):
        if sentence := _MARKUP.sub("", part or ""):
            yield _short(one_line(sentence))


def _short(text: str) -> str:
    short_text = cut(text, _LONGEST_SENTENCE)
    return text if short_text == text else f"{short_text}…"


def _terms(text: str) -> frozenset[str]:
    lower = text.lower()
    words = (word for word in _WORD.findall(lower) if word not in _STOP_WORDS)
    return frozenset([*words, *han_pairs(lower)]) - _EMPTY_BIGRAMS


def _score(sentence: _Sentence, frequency: Counter[str], count: int) -> float:
    if not sentence.terms:
        return -1.0
    weight = sum(math.log1p(frequency[term]) for term in sentence.terms)
    score = weight / math.sqrt(len(sentence.terms) + 3)
    score += 0.3 * (sentence.place / count)  # the newest first, other things being equal
    score += 0.5 if sentence.place == 0 or sentence.carried else 0.0
    if _QUESTION.search(sentence.text):
        return 0.4 * score
    has_date = bool(_DATE.search(sentence.text) or _NUMBER.search(sentence.text))
    if sentence.by_bot and not has_date and _wealth(sentence) < _LEAST_OF_BOT:
        return -1.0
    score += 4.0 if not sentence.by_bot and _REMEMBER.search(sentence.text) else 0.0
    score += 2.0 if _DECISION.search(sentence.text) else 0.0
    score += 1.5 if _DATE.search(sentence.text) else 0.0
    score += 0.5 if _NUMBER.search(sentence.text) else 0.0
    return 0.5 * score if sentence.by_bot else score


def _wealth(sentence: _Sentence) -> float:
    """How much it says, in words; two bigrams are about one."""
    return sum(0.5 if has_han(term) else 1.0 for term in sentence.terms)


def _says_the_same(sentence: _Sentence, other: _Sentence) -> bool:
    """Another number makes another fact."""
    new = sentence.terms - other.terms
    return len(new) <= (1 - _SAME) * len(sentence.terms) and not any(map(str.isdecimal, new))
