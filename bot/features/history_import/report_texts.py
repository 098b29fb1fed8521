"""What a chat is told of its import, in both languages. Pure."""

from __future__ import annotations

from datetime import datetime

from bot.feishu import markup
from bot.text.catalogues import Catalogue
from bot.text.dates import spoken
from bot.text.languages import Language
from memory.tables.imports import HistoryImport

say = Catalogue(__file__).say

_MISSING = ("old_threads", "broken_threads", "deleted", "without_text", "unreadable")


def finished(
    chat_import: HistoryImport,
    language: Language,
    *,
    who: str,
    since: datetime | None,
    now: datetime,
    shown: bool,
) -> str:
    """Who imported what, since when, who reads it, what is missing, and how to remove it. `who` is
    a name, "" for an operator; `since` None: from the beginning."""
    asked_by = markup.card_markdown(who) if who else say("operator", language)
    began = spoken.day(since, language, now=now) if since else ""
    span = say("since", language, day=began) if since else say("from-the-beginning", language)
    own = chat_import.chat_type == "p2p"
    lines = [
        say(
            "own" if own else "finished", language, n=chat_import.messages, who=asked_by, span=span
        ),
        say("own-use" if own else "use", language),
        "" if own else say(_readers(chat_import, is_shown=shown), language),
        _missing(chat_import, language),
        say("remove", language),
    ]
    return "\n\n".join(filter(None, lines))


def _readers(chat_import: HistoryImport, *, is_shown: bool) -> str:
    if is_shown:
        return "read-by-all"
    return "read-by-nobody" if chat_import.report.get("members_unknown") else "read-since-joining"


def failed(chat_import: HistoryImport, language: Language) -> str:
    """Why the history could not be read (on)."""
    key = f"failed-{chat_import.error}"
    reason = say(key if Catalogue(__file__).has(key) else "failed-refused", language)
    kept_line = say("kept-so-far", language, n=chat_import.messages) if chat_import.messages else ""
    return "\n\n".join(filter(None, [reason, kept_line]))


def _missing(chat_import: HistoryImport, language: Language) -> str:
    """What was there and is not kept, by kind."""
    counts = [(kind, chat_import.report.get(kind, 0)) for kind in _MISSING]
    kinds = [say(f"missing-{kind}", language, n=count) for kind, count in counts if count]
    return say("missing", language, kinds=say("comma", language).join(kinds)) if kinds else ""
