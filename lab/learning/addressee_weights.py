"""Learns the weights of `bot.listening.cues` from labelled messages: logistic
regression.

A trait has a weight that it shares between the situations and one of its own in each; both are kept
small, so that what is seldom seen in a situation is taken from the others. Checked by leaving
conversations out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_score, recall_score
from sklearn.model_selection import PredefinedSplit, cross_val_predict
from sklearn.pipeline import Pipeline, make_pipeline, make_union

from bot.listening.cues import SURE, situation, traits, words
from bot.listening.reply_links import AddresseeWeights
from lab.evaluate.listening import exchange_of, is_weighed
from lab.learning.data_files import data_file

FOLDS = 5
SITUATIONS = 4
STRENGTH = 0.3  # of the examples against small weights
OFTEN = 6  # a word that is in fewer messages teaches nothing
_LEAST = 0.05  # a smaller weight says nothing
_SHARED = -1  # the place of a weight that all situations share
_ABOUT = (
    "Weights of bot/listening/cues.py, learned by `lab.learning`"
    " from labelled"
    " messages. A trait has one for each situation: the bot answered the author, nobody else has"
    " written since; the same, and others have; it answered somebody else, nobody else has written"
    " since; the same, and others have. A word has one for all."
)


@dataclass(frozen=True)
class LabelledMessageTraits:
    """A message as its words, and its traits in its situation; `conversation` names its talk."""

    conversation: str
    situation: int
    traits: tuple[str, ...]
    words: tuple[str, ...]
    for_bot: bool


def learn(
    rows: Sequence[Mapping[str, Any]], say: Callable[[str], None] = print
) -> AddresseeWeights:
    """The weights, after saying how well others, learned without a fifth of the talks, tell it."""
    examples = [example for row in rows if is_weighed(row) for example in _examples(row)]
    for_bot = [example.for_bot for example in examples]
    talks = sorted({example.conversation for example in examples})
    folds = {talk: number % FOLDS for number, talk in enumerate(talks)}
    left_out = PredefinedSplit([folds[example.conversation] for example in examples])
    likely = cross_val_predict(_model(), examples, for_bot, cv=left_out, method="predict_proba")
    heard = likely[:, 1] >= SURE
    say(f"{len(examples)} messages of {len(talks)} talks, each talk judged without it:")
    precision, recall = (score(for_bot, heard) for score in (precision_score, recall_score))
    say(f"precision {precision:.3f}, recall {recall:.3f}")
    return _weights(_model().fit(examples, for_bot))


def _model() -> Pipeline:
    count = make_union(
        CountVectorizer(analyzer=_placed_traits),
        CountVectorizer(analyzer=lambda example: example.words, min_df=OFTEN),
    )
    return make_pipeline(
        count, LogisticRegression(C=STRENGTH, fit_intercept=False, max_iter=1000, tol=1e-6)
    )


def _placed_traits(example: LabelledMessageTraits) -> Iterator[tuple[str, int]]:
    for trait in example.traits:
        yield from ((trait, _SHARED), (trait, example.situation))


def _weights(model: Pipeline) -> AddresseeWeights:
    placed, said = (counter.vocabulary_ for _, counter in model[0].transformer_list)
    places = [*sorted(placed, key=placed.get), *sorted(said, key=said.get)]
    found = dict(zip(places, model[1].coef_[0].tolist(), strict=True))
    return AddresseeWeights(
        {
            trait: tuple(
                found[trait, _SHARED] + found.get((trait, n), 0.0) for n in range(SITUATIONS)
            )
            for trait, place in placed
            if place == _SHARED
        },
        {word: found[word] for word in said},
    )


def file_of(weights: AddresseeWeights) -> str:
    """The file `bot/listening/addressee_weights.json`, without the weights that say nothing."""
    traits_ = {
        trait: [round(value, 2) + 0.0 for value in values]
        for trait, values in sorted(weights.traits.items())
        if max(map(abs, values)) >= _LEAST
    }
    words_ = {w: float(f"{v:.2g}") for w, v in sorted(weights.words.items()) if abs(v) >= _LEAST}
    return data_file(_ABOUT, {"traits": traits_, "words": words_})


def _examples(row: Mapping[str, Any]) -> Iterator[LabelledMessageTraits]:
    """The message; one for the bot also as if nobody had written since it spoke."""
    yield _example(row)
    last = max(index for index, said in enumerate(row["context"]) if said["is_bot"])
    if row["expect"] == "respond" and last + 1 < len(row["context"]):
        yield _example({**row, "context": row["context"][: last + 1]})


def _example(row: Mapping[str, Any]) -> LabelledMessageTraits:
    text, author, around = exchange_of(row)
    talk = str(row.get("conversation", "")) + row["context"][0]["text"]
    return LabelledMessageTraits(
        talk,
        situation(author, around),
        tuple(sorted(traits(text, author, around))),
        tuple(sorted(words(text))),
        row["expect"] == "respond",
    )
