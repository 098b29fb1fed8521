"""Why a file was not read, in one sentence: to people, and in English to the model. Pure."""

from __future__ import annotations

from bot.files.reading import ReadingLimits, Reason
from bot.text.catalogues import Catalogue
from bot.text.languages import Language

say = Catalogue(__file__).say

MOST_FILES = 4


def not_read(name: str, reason: Reason, limits: ReadingLimits, language: Language) -> str:
    """`name` is a `safe_name`; as it is shown, before it is escaped."""
    why = say(
        f"why-{reason}",
        language,
        megabytes=limits.megabytes,
        seconds=limits.seconds,
        files=MOST_FILES,
    )
    return say("not-read", language, name=name, why=why)
