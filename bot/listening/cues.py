"""Does a message that addresses nobody go on with what the bot said? Pure, English and Chinese.

The bot prefers silence. Who calls it by name is heard, who calls a colleague or leaves is left
alone; all else is weighed (`bot.listening.addressee_classifier`). What is clear neither way is
`UNCLEAR`, for the judge model if there is one.
"""

import re
from enum import StrEnum

from bot.listening.addressee_classifier import SURE, SURE_ACROSS, likelihood
from bot.listening.asides import LEAVES, THANKS, is_aside, without_courtesies
from bot.listening.exchange import NO_EXCHANGE, LastExchange
from bot.listening.questions import is_question
from bot.listening.replies import postpones
from bot.listening.vocatives import calls, names_a_person


class Cue(StrEnum):
    """How a message reads."""

    FOLLOW_UP = "follow_up"
    CLOSING = "closing"
    SIDE_TALK = "side_talk"
    UNCLEAR = "unclear"


_READ_CHARACTERS = 1000
_URL = re.compile(r"https?://\S+")


def looks_like_followup(text: str, author: str = "", exchange: LastExchange = NO_EXCHANGE) -> bool:
    """True when `author` most likely speaks to the bot with `text`."""
    return cue_of(text, author, exchange) is Cue.FOLLOW_UP


def cue_of(text: str, author: str, exchange: LastExchange) -> Cue:
    """How `text`, of a long one its beginning, reads after `exchange`."""
    whole = _URL.sub(" ", text[:_READ_CHARACTERS]).strip()
    rest = without_courtesies(whole)
    if calls(rest, exchange.bot_name):
        return Cue.FOLLOW_UP
    if _is_elsewhere(rest, exchange):
        return Cue.SIDE_TALK
    enough = SURE_ACROSS if exchange.across else SURE
    if whole and likelihood(whole, author, exchange) >= enough:
        return Cue.FOLLOW_UP
    if is_side_talk(rest, exchange):
        return Cue.SIDE_TALK
    return Cue.CLOSING if is_closing(rest) else Cue.UNCLEAR


def is_side_talk(text: str, exchange: LastExchange) -> bool:
    """Whether it reads as said to people, whatever the bot said before."""
    rest = without_courtesies(text)
    return bool(
        _is_elsewhere(rest, exchange)
        or names_a_person(rest, exchange.names)
        or is_aside(rest, exchange)
    )


def is_closing(text: str) -> bool:
    """Whether it ends the matter for now: thanks, ok, let me check."""
    rest = without_courtesies(text)
    return not rest or postpones(rest) or bool(THANKS.search(rest) and not is_question(rest))


def _is_elsewhere(rest: str, exchange: LastExchange) -> bool:
    return bool(LEAVES.search(rest)) or any(calls(rest, name) for name in exchange.names)
