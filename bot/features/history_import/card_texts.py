"""What `/import` says: what an import is, its preview, how far it is, in both languages. Pure.

What came of one says `report_texts`. Texts are made safe when the card is composed.
"""

from __future__ import annotations

import math
from datetime import datetime

from bot.features.history_import.estimating import Estimate
from bot.features.history_import.standing import expected_end, share_read
from bot.features.own_memory.item_names import short
from bot.text.catalogues import Catalogue
from bot.text.dates import spoken
from bot.text.languages import Language
from memory.tables.imports import HistoryImport

say = Catalogue(__file__).say


def intro(language: Language, *, in_group: bool, rule: str) -> str:
    """What an import is, and who can ask about it. `rule`: the choice of the rule `history`."""
    if not in_group:
        return say("intro-in-p2p", language)
    return say("intro-in-group", language, readers=say(f"readers-{rule}", language))


def preview(
    estimate: Estimate, language: Language, *, now: datetime, in_group: bool, rule: str
) -> str:
    """What an import would keep; times are in the zone of `now`."""
    if not estimate.messages:
        return say("preview-empty", language)
    oldest = estimate.oldest_ms
    when = _day(oldest, language, now) if oldest is not None else ""
    amount = say("about-messages", language, n=estimate.messages, count=f"{estimate.messages:,}")
    readers = f"readers-{rule}" if in_group else "readers-in-p2p"
    lines = [
        say("preview", language),
        "",
        say(
            "preview-messages-since" if when else "preview-messages",
            language,
            amount=amount,
            when=when,
        ),
        say("preview-time", language, time=_minutes(estimate.minutes, language)),
        say("preview-kept", language),
        say("preview-readers", language, readers=say(readers, language)),
    ]
    if in_group:
        lines += ["", say("tell-the-group", language)]
    return "\n".join(lines)


def progress(
    chat_import: HistoryImport,
    language: Language,
    *,
    who: str,
    now: datetime,
    page_s: float,
) -> str:
    """How far an import is that is running, paused, or removed. `who`: the name of who asked for
    it; `page_s`: seconds a page."""
    if chat_import.state == "removing":
        return say("removing", language, n=chat_import.messages, count=f"{chat_import.messages:,}")
    where = "in-p2p" if chat_import.chat_type == "p2p" else "in-group"
    since = chat_import.since_ms
    span = say("span-since", language, when=_day(since, language, now)) if since else ""
    asked_by = say("asked-by", language, who=short(who)) if who else ""
    head = say(f"progress-{chat_import.state}-{where}", language)
    about = " · ".join(part for part in (span or say("span-whole", language), asked_by) if part)
    kept_line = say(
        "kept-so-far", language, n=chat_import.messages, count=f"{chat_import.messages:,}"
    )
    pages = say("pages-read", language, n=chat_import.pages, count=f"{chat_import.pages:,}")
    return "\n".join(
        (head, about, "", f"{kept_line} · {pages}", _rest(chat_import, language, now, page_s))
    )


def _rest(chat_import: HistoryImport, language: Language, now: datetime, page_s: float) -> str:
    if chat_import.phase != "chat":
        return say(f"phase-{chat_import.phase}", language)
    share, ends = share_read(chat_import), expected_end(chat_import, now, page_s)
    if share is None:
        return say("phase-chat", language)
    percent = math.floor(share * 100)
    if ends is None:
        return say("share", language, percent=percent)
    when = spoken.moment(ends, language, now=now)
    return say("share-and-end", language, percent=percent, when=when)


def _minutes(minutes: float, language: Language) -> str:
    whole = max(math.ceil(minutes), 1)
    if whole < 120:
        return say("about-minutes", language, n=whole)
    return say("about-hours", language, n=math.ceil(whole / 60))


def _day(ms: int, language: Language, now: datetime) -> str:
    return spoken.day(datetime.fromtimestamp(ms / 1000, now.tzinfo), language, now=now)
