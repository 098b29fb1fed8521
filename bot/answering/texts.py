"""Holds the texts that people read around an answer or in place of one. Pure."""

from __future__ import annotations

from bot.text.languages import Catalogue, Language

CATALOGUE = Catalogue(__file__)
say, say_both = CATALOGUE.say, CATALOGUE.say_both

_KEYS = {"empty": "model-empty", "too_long": "model-too-long"}

# What passes only when an operator mends it; the names are those of `NEXT_STEPS`.
_NOT_SET_UP = frozenset(
    {
        "wrong_key",
        "not_allowed",
        "no_such_model",
        "quota_used_up",
        "no_completion",
        "only_thoughts",
    }
)


def apology(reason: str, language: Language) -> str:
    """What is said when the model could not be asked, or gave nothing (`empty`)."""
    if reason in _NOT_SET_UP:
        return say("model-not-set-up", language, cause=say(f"cause-{reason}", language))
    return say(_KEYS.get(reason, "model-away"), language)


def failure_cause(outcome: str, reason: str, language: Language) -> str:
    """Why there was no answer, as a clause; a reason without words of its own by its code.
    `outcome` and `reason` are those of the turn, which hold no words of anybody."""
    if outcome == "undelivered":
        return say("cause-undelivered", language, code=reason.removeprefix("feishu "))
    if CATALOGUE.has(f"cause-{reason}"):
        return say(f"cause-{reason}", language)
    return say("cause-other", language, code=reason or "unknown")
