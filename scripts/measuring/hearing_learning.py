"""Learns the weights of `bot.group.hearing` from labelled messages: logistic regression.

A trait has a weight that it shares between the situations and one of its own in each; both are kept
small, so that what is seldom seen in a situation is taken from the others. Checked by leaving
conversations out.
"""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.group.hearing import SURE
from bot.group.traits import situation, traits, words
from scripts.operating.labelled_messages import exchange_of, is_weighed

FOLDS = 5
STEPS = 150
STRENGTH = 0.3  # of the examples against small weights
SITUATIONS = 4
OFTEN = 6  # a word that is in fewer messages teaches nothing
_ANY = SITUATIONS
_WORD = SITUATIONS + 1
_LEAST = 0.05  # a smaller weight says nothing
_HEAD = '''"""The weights of `bot.group.hearing`, of each trait in each situation: the greater, the
likelier the message is for the bot.

Learned by `scripts/decisions --learn` from labelled messages. The situations: the bot answered the
author, nobody else has written since; the same, and others have; it answered somebody else, nobody
else has written since; the same, and others have. A word has one weight for all.
"""

# fmt: off

WEIGHTS: dict[str, tuple[float, float, float, float]] = {'''


@dataclass(frozen=True)
class Weights:
    """Of each trait in each situation, and of words in all of them."""

    traits: Mapping[str, tuple[float, ...]]
    words: Mapping[str, float]


@dataclass(frozen=True)
class Example:
    """A message as its words, and its traits in its situation; `conversation` names its talk."""

    conversation: str
    where: int
    traits: tuple[str, ...]
    words: tuple[str, ...]
    for_bot: bool


def learn(rows: Sequence[Mapping[str, Any]], say: Callable[[str], None] = print) -> Weights:
    """The weights, after saying how well others, learned without a fifth of the talks, tell it."""
    examples = [example for row in rows if is_weighed(row) for example in _examples(row)]
    talks = sorted({example.conversation for example in examples})
    hits = given = expected = 0
    for fold in range(FOLDS):
        left_out = frozenset(talks[fold::FOLDS])
        weights = _fitted([e for e in examples if e.conversation not in left_out])
        for example in examples:
            if example.conversation in left_out:
                heard = _likelihood(weights, example) >= SURE
                hits += heard and example.for_bot
                given += heard
                expected += example.for_bot
    say(f"{len(examples)} messages of {len(talks)} talks, each talk judged without it:")
    say(f"precision {hits / (given or 1):.3f}, recall {hits / (expected or 1):.3f}")
    return _fitted(examples)


def source_of(weights: Weights) -> str:
    """The module `bot.group.hearing_weights`."""
    lines = [_HEAD]
    for trait, values in sorted(weights.traits.items()):
        if max(map(abs, values)) >= _LEAST:
            figures = ", ".join(f"{round(value, 2) + 0.0:g}" for value in values)
            lines.append(f'    "{trait}": ({figures}),')
    said = (f'"{w}": {v:.2g},' for w, v in sorted(weights.words.items()) if abs(v) >= _LEAST)
    lines += ["}", "", "WORDS: dict[str, float] = {"]
    lines += textwrap.wrap(" ".join(said), 72, initial_indent=" " * 4, subsequent_indent=" " * 4)
    return "\n".join([*lines, "}"])


def _examples(row: Mapping[str, Any]) -> Iterator[Example]:
    """The message; one for the bot also as if nobody had written since it spoke."""
    yield _example(row)
    last = max(index for index, said in enumerate(row["context"]) if said["is_bot"])
    if row["expect"] == "respond" and last + 1 < len(row["context"]):
        yield _example({**row, "context": row["context"][: last + 1]})


def _example(row: Mapping[str, Any]) -> Example:
    text, author, around = exchange_of(row)
    talk = str(row.get("conversation", "")) + row["context"][0]["text"]
    return Example(
        talk,
        situation(author, around),
        tuple(sorted(traits(text, author, around))),
        tuple(sorted(words(text))),
        row["expect"] == "respond",
    )


def _likelihood(weights: Weights, example: Example) -> float:
    known = (weights.traits[trait] for trait in example.traits if trait in weights.traits)
    said = sum(weights.words.get(word, 0.0) for word in example.words)
    return _logistic(said + sum(values[example.where] for values in known))


def _logistic(score: float) -> float:
    return 1 / (1 + math.exp(-score))


def _fitted(examples: Iterable[Example]) -> Weights:
    """By Rprop: each weight goes its own pace, faster while its slope keeps its sign."""
    known = list(examples)
    often = Counter(word for example in known for word in example.words)
    rows = [(_places(e, often), e.for_bot) for e in known]
    places = sorted({place for row, _ in rows for place in row})
    number = {place: index for index, place in enumerate(places)}
    numbered = [([number[place] for place in row], for_bot) for row, for_bot in rows]
    values, paces, before = [0.0] * len(places), [0.05] * len(places), [0.0] * len(places)
    for _ in range(STEPS):
        slopes = _slopes(values, numbered)
        for index, slope in enumerate(slopes):
            turned = slope * before[index]
            paces[index] *= 1.2 if turned > 0 else 0.5 if turned < 0 else 1.0
            values[index] -= math.copysign(paces[index], slope) if slope else 0.0
        before = slopes
    found = dict(zip(places, values, strict=True))
    of_traits = {
        trait: tuple(found[trait, _ANY] + found.get((trait, n), 0.0) for n in range(SITUATIONS))
        for trait, where in places
        if where == _ANY
    }
    return Weights(
        of_traits, {word: found[word, where] for word, where in places if where == _WORD}
    )


def _slopes(values: Sequence[float], rows: Sequence[tuple[list[int], bool]]) -> list[float]:
    slopes = list(values)
    for places, for_bot in rows:
        error = STRENGTH * (_logistic(sum(values[n] for n in places)) - for_bot)
        for n in places:
            slopes[n] += error
    return slopes


def _places(example: Example, often: Mapping[str, int]) -> list[tuple[str, int]]:
    said = [(word, _WORD) for word in example.words if often[word] >= OFTEN]
    return said + [(trait, where) for trait in example.traits for where in (_ANY, example.where)]
