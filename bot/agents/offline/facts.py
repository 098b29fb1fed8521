"""How the offline model remembers and finds facts in what it was told. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from bot.agents.prompt import PERSON_MEMORY, THREAD_MEMORY

_LATIN = re.compile(r"[a-z0-9]+")
_HAN = re.compile(r"[\u3400-\u9fff]+")
_REMEMBER = re.compile(
    r"^\W*(?:please\s+)?(?:remember|note|keep in mind)(?:\s+that)?\b[\s:,]*(.+)"
    r"|^\W*(?:请)?(?:帮我)?(?:记住|记一下|记着|记下)[，,：:\s]*(.+)",
    re.IGNORECASE | re.DOTALL,
)
_QUESTION = re.compile(
    r"[?？吗呢么]\s*$"
    r"|^\W*(?:what|when|where|who|which|how|why|do|does|did|is|are|can|could)\b"
    r"|什么|几时|哪|谁|多少|怎么|何时",
    re.IGNORECASE,
)
_STOP = frozenset(
    "a an and are at be can did do does for have how i in is it its me my of on or our s t that the"
    " this to was we were what when where which who why will with you your remember please".split()
)
_TOPIC_END = re.compile(r"\s+(?:is|are|was|were|will|has|have)\s+|\s*[=:：]\s*|是|在|叫|为|有")
_LONGEST_KEY = 40


def is_question(text: str) -> bool:
    return bool(_QUESTION.search(text))


def to_remember(text: str) -> str:
    """The fact in “remember that …”, or nothing."""
    match = _REMEMBER.match(text)
    return "" if not match or is_question(text) else _stated(match)


def key(fact: str) -> str:
    """What a fact is about, as a key of the working memory: a later word on it replaces it."""
    topic = _TOPIC_END.split(fact.lower(), maxsplit=1)[0]
    words = re.findall(r"[a-z0-9]+|[\u3400-\u9fff]+", topic)
    return "_".join(words)[:_LONGEST_KEY] or "fact"


def kept(instructions: str) -> list[str]:
    """The texts of the working memory that stands in the instructions."""
    texts: list[str] = []
    for heading in (THREAD_MEMORY, PERSON_MEMORY):
        _, found, after = instructions.partition(f"{heading}\n")
        if found:
            texts += _texts(json.loads(after.partition("\n")[0]))
    return texts


def closest(question: str, statements: Iterable[str]) -> str:
    """The statement that shares most words with the question; the latest of equals."""
    wanted = _words(question)
    best, best_score = "", 0
    for statement in statements:
        score = len(wanted & _words(statement))
        if score and score >= best_score and not is_question(statement):
            best, best_score = statement, score
    match = _REMEMBER.match(best)
    return _stated(match) if match else _without_stop(best)


def spoken(line: str) -> str:
    """What was said, without the author's name and people addressed in front."""
    return re.sub(r"^(?:[^\s:：]{1,40}[:：]\s+)?(?:@\S+\s+)*", "", line.strip())


def _stated(match: re.Match[str]) -> str:
    return _without_stop(match[1] or match[2])


def _without_stop(text: str) -> str:
    return text.strip().rstrip(".。!！")


def _words(text: str) -> set[str]:
    """Latin words without stop words, and pairs of neighbouring CJK characters."""
    latin = {word for word in _LATIN.findall(text.lower()) if word not in _STOP}
    return latin | {run[i : i + 2] for run in _HAN.findall(text) for i in range(len(run) - 1)}


def _texts(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for name, item in value.items():
                # a bare value says little without the key it stands under
                yield from (f"{name}: {item}",) if _is_short(item) else _texts(item)
        case list():
            for item in value:
                yield from _texts(item)
        case str() | int() | float():
            yield str(value)


def _is_short(item: Any) -> bool:
    return isinstance(item, int | float) or (isinstance(item, str) and len(item.split()) <= 2)
