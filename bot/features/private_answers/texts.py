"""What people read of private look-ups, in the language of their question. Pure."""

from __future__ import annotations

from bot.feishu import markup
from bot.text.catalogues import Catalogue
from bot.text.languages import Language
from memory.text import one_line

_QUESTION_CHARS = 60

say = Catalogue(__file__).say


def offer(
    question: str, language: Language, *, in_p2p: bool = False, document: bool = False
) -> str:
    """The card that offers a private answer, as Markdown; in p2p it says where the question was.
    `document`: it is one that not everybody there can open."""
    if document:
        key = "offer-document-in-p2p" if in_p2p else "offer-document"
    else:
        key = "offer-in-p2p" if in_p2p else "offer"
    return markup.card_markdown(say(key, language, question=_short(question)))


def undelivered(question: str, language: Language) -> str:
    """What stands before an answer that could not be posted in its group, as Markdown."""
    return markup.card_markdown(say("undelivered", language, question=_short(question)))


def _short(question: str) -> str:
    line = one_line(question)
    return line if len(line) <= _QUESTION_CHARS else line[: _QUESTION_CHARS - 1] + "…"
