"""What people read of private look-ups, in the language of their question. Pure."""

from __future__ import annotations

from bot.feishu import markup
from bot.text.catalogues import Catalogue
from bot.text.languages import Language
from memory.text import one_line

_QUESTION_CHARS = 60

say = Catalogue(__file__).say


def offer(question: str, language: Language, *, in_p2p: bool = False) -> str:
    """The card that offers a private answer, as Markdown; in p2p it says where the question was."""
    line = one_line(question)
    if len(line) > _QUESTION_CHARS:
        line = line[: _QUESTION_CHARS - 1] + "…"
    key = "offer-in-p2p" if in_p2p else "offer"
    return markup.card_markdown(say(key, language, question=line))
