"""Learns the weights of `bot.listening.link_weights` from annotated logs, by Adagrad.

Twice: what came before is told apart as annotated first, then as the weights of the first time
have it, which is what they will meet in use.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import getitem

from bot.listening.reply_links import (
    FIRST_VIEWS,
    PAIR_VIEWS,
    WINDOW,
    Speakers,
    WeighedMessage,
    Words,
    bins,
)
from lab.corpora.logs import ChatLog
from lab.learning.data_files import data_file

EPOCHS = 5
_VIEWS = (FIRST_VIEWS, PAIR_VIEWS)
_ABOUT = (
    "Weights of bot/listening/reply_links.py, learned by `lab.learning` from the"
    " train part"
    " of the corpus of Kummerfeld et al., “A Large-Scale Corpus for Conversation Disentanglement”"
    " (ACL 2019; the data is CC BY 4.0, github.com/jkkummerfeld/irc-disentanglement). These are"
    " figures about its messages, no message."
)
_RATE = 0.1
_LEAST = 1e-4  # a smaller error teaches nothing

Tables = tuple[list[float], ...]
Model = tuple[Tables, Tables]


@dataclass(slots=True)
class LabelledLink:
    """A message as bins, of itself and of what came before (oldest first, end to end), and which of
    them are right: 0 that it begins a topic, n that it answers the n-th."""

    first: bytes
    pairs: list[bytes]
    right: frozenset[int]


def learn(logs: Sequence[ChatLog], say: Callable[[str], None] = print) -> Model:
    """The tables of weights, for FIRST and for PAIR."""
    examples = [example for log in logs for example in _examples(log, _annotated(log))]
    model = _fitted(examples, say)
    say(f"{len(examples)} messages; again, with topics as found")
    return _fitted([e for log in logs for e in _examples(log, {}, model)], say)


def file_of(model: Model) -> str:
    """The file `bot/listening/link_weights.json`."""
    first, pair = (
        dict(zip(views, map(_rounded, tables), strict=True))
        for views, tables in zip(_VIEWS, model, strict=True)
    )
    return data_file(_ABOUT, {"first": first, "pair": pair})


def _rounded(table: Iterable[float]) -> list[float]:
    return [round(weight, 2) + 0.0 for weight in table]


def _annotated(log: ChatLog) -> Mapping[int, int]:
    """Of each line the last line it answers, as annotated."""
    return {
        line: max((n for n in links if n < line), default=line) for line, links in log.links.items()
    }


def _examples(
    log: ChatLog, answered: Mapping[int, int], model: Model | None = None
) -> Iterator[LabelledLink]:
    """The annotated messages of a log. What came before is told apart by `model`, else as
    `answered` says."""
    people = Speakers()
    chat: list[tuple[int, WeighedMessage]] = []
    topics: dict[int, int] = {}
    for line, message in log.messages.items():
        people.meet(message)
        said = people.read(message)
        earlier = chat[-WINDOW:]
        example = _example(said, [one for _, one in earlier])
        before = answered.get(line, line)
        if model:
            scores = _scores(model, example)
            best = max(range(len(scores)), key=scores.__getitem__)
            before = earlier[best - 1][0] if best else line
        topics[line] = topics.get(before, line)
        said.topic = topics[line]
        chat.append((line, said))
        if line in log.links:
            places = {other: n for n, (other, _) in enumerate(earlier, 1)} | {line: 0}
            example.right = frozenset(places[n] for n in log.links[line] if n in places)
            if example.right:
                yield example


def _example(said: WeighedMessage, earlier: Sequence[WeighedMessage]) -> LabelledLink:
    first, pairs = bins(said, earlier, Words(said, earlier))
    return LabelledLink(bytes(first), [bytes(places) for places in pairs], frozenset())


def _scores(model: Model, example: LabelledLink) -> list[float]:
    first, pair = model
    scores = [sum(map(getitem, first, example.first))]
    scores += [sum(map(getitem, pair, places)) for places in example.pairs]
    return scores


def _fitted(examples: Iterable[LabelledLink], say: Callable[[str], None]) -> Model:
    chance = random.Random(1)  # noqa: S311  an order, no secret
    order = list(examples)
    model = _blank(0.0)
    squares = _blank(1.0)
    for epoch in range(EPOCHS):
        chance.shuffle(order)
        rate, lost = _RATE * 0.6**epoch, 0.0
        for example in order:
            lost += _step(model, squares, example, rate)
        say(f"epoch {epoch + 1}: loss {lost / len(order):.4f}")
    return model


def _blank(value: float) -> Model:
    first, pair = (tuple([value] * size for size in views.values()) for views in _VIEWS)
    return first, pair


def _step(model: Model, squares: Model, example: LabelledLink, rate: float) -> float:
    """Moves the weights towards what is right; returns how unlikely that was (−ln)."""
    scores = _scores(model, example)
    most = max(scores)
    likely = [math.exp(score - most) for score in scores]
    total, right = sum(likely), sum(likely[n] for n in example.right)
    for n, one in enumerate(likely):
        error = one / total - (one / right if n in example.right else 0.0)
        if abs(error) > _LEAST:
            side, places = (1, example.pairs[n - 1]) if n else (0, example.first)
            for table, square, place in zip(model[side], squares[side], places, strict=True):
                square[place] += error * error
                table[place] -= rate * error / math.sqrt(square[place])
    return math.log(total / right)
