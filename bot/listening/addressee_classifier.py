"""How likely a message that addresses nobody is for the bot. Pure.

A log-linear model: each trait (`bot.listening.traits`) has a weight for each situation in
`addressee_weights.json`, and some words have one for all; the score is the sum of the weights of
what is there.
"""

import math

from bot.listening.exchange import LastExchange
from bot.listening.traits import situation, traits, words
from bot.listening.weights import ADDRESSEE

SURE = 0.67  # from here on the bot answers: it prefers silence
SURE_ACROSS = 0.85  # the same where it spoke in a thread and people went on outside of it
_NO_WEIGHT = (0.0, 0.0, 0.0, 0.0)


def likelihood(text: str, author: str, around: LastExchange) -> float:
    """How likely `author` speaks to the bot with `text`, from 0 to 1."""
    where = situation(author, around)
    found_traits = traits(text, author, around)
    score = sum(ADDRESSEE.traits.get(trait, _NO_WEIGHT)[where] for trait in found_traits)
    score += sum(ADDRESSEE.words.get(word, 0.0) for word in words(text))
    return 1 / (1 + math.exp(-score))
