"""What people read in place of an answer. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bot.text.catalogues import Catalogue
from bot.text.languages import Language
from memory.foreign_text import quoted

say = Catalogue(__file__).say


def cut_short(calls: Sequence[Mapping[str, Any]], language: Language) -> str:
    """An honest sentence, with the names of the steps that were done."""
    done_names = [call["name"] for call in calls if call["ok"]]
    return "\n\n".join([say("cut-short", language), *_steps(done_names, language)])


def stopped_first(done_names: Sequence[str], language: Language) -> str:
    """That it was stopped before there was an answer, and the steps done, by name."""
    return "\n\n".join([say("stopped-first", language), *_steps(done_names, language)])


def _steps(done_names: Sequence[str], language: Language) -> list[str]:
    return (
        [say("steps-done", language, steps=", ".join(dict.fromkeys(done_names)))]
        if done_names
        else []
    )


def declined(model_words: str, language: Language) -> str:
    """That the model declined, and what it said about it, if anything."""
    sentence = say("declined", language)
    return f"{sentence}\n\n{quoted(model_words)}" if model_words else sentence


def confirm_below(language: Language) -> str:
    """What is said where the model only wants something done."""
    return say("confirm-below", language)
