"""Renders the cards of `/import`: explanation, preview, progress and buttons. Pure.

Only the person who was asked can start or remove an import, once. Everyone who manages the chat
can press the other buttons, repeatedly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bot.features.history_import.importing import Estimate
from bot.features.own_memory.texts import short_text
from bot.hooks import FeatureTurn
from bot.outbox.buttons import FOLLOW_UP_LIVES_S, decision_button
from bot.text import times
from bot.text.languages import Catalogue, Language
from memory.tables.cards import NewButton, new_button_id
from memory.tables.imports import HistoryImport

say = Catalogue(__file__).say

PREVIEW, START, REFRESH, PAUSE, RESUME, MORE, ASK_REMOVAL, REMOVE = TOOLS = (
    "import.preview",
    "import.start",
    "import.refresh",
    "import.pause",
    "import.resume",
    "import.more",
    "import.ask_removal",
    "import.remove",
)
SPAN, EVERYTHING = "span", "all"
_DAYS = (30, 365)
_DAY_MS = 86_400_000
_TOOLS_FOR: Mapping[str, tuple[str, ...]] = {
    "running": (REFRESH, PAUSE, ASK_REMOVAL),
    "paused": (RESUME, ASK_REMOVAL),
    "failed": (RESUME, ASK_REMOVAL),
    "removing": (REFRESH,),
}


def intro_text(language: Language, *, in_group: bool, rule: str) -> str:
    """What an import is, and who can ask about it. `rule`: the choice of the rule `history`."""
    if not in_group:
        return say("intro-in-p2p", language)
    return say("intro-in-group", language, readers=say(f"readers-{rule}", language))


def preview_text(
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


def progress_text(
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
    since_ms = chat_import.since_ms
    span = say("span-since", language, when=_day(since_ms, language, now)) if since_ms else ""
    asked_by = say("asked-by", language, who=short_text(who)) if who else ""
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
    share, ends = chat_import.share_read, chat_import.expected_end(now, page_s)
    if share is None:
        return say("phase-chat", language)
    percent = math.floor(share * 100)
    if ends is None:
        return say("share", language, percent=percent)
    when = times.moment_text(ends, language, now=now)
    return say("share-and-end", language, percent=percent, when=when)


def _minutes(minutes: float, language: Language) -> str:
    whole = max(math.ceil(minutes), 1)
    if whole < 120:
        return say("about-minutes", language, n=whole)
    return say("about-hours", language, n=math.ceil(whole / 60))


def _day(ms: int, language: Language, now: datetime) -> str:
    return times.day_text(datetime.fromtimestamp(ms / 1000, now.tzinfo), language, now=now)


def span_choices(chat_import: HistoryImport | None, now_ms: int) -> tuple[str, ...]:
    """How far back can be chosen: days, or everything; further than an import reaches already."""
    if chat_import and chat_import.since_ms is None:
        return ()
    oldest_ms = now_ms if not chat_import or chat_import.since_ms is None else chat_import.since_ms
    return (*(str(days) for days in _DAYS if now_ms - days * _DAY_MS < oldest_ms), EVERYTHING)


def span_start_ms(span: str, now_ms: int) -> int | None:
    """When such a span began; None: there is no limit."""
    return None if span == EVERYTHING else now_ms - int(span) * _DAY_MS


def preview_form(here: FeatureTurn, spans_offered: tuple[str, ...]) -> NewButton:
    """The select of how far back, and the button that shows the preview."""
    language = here.language
    select = {
        "name": SPAN,
        "label": say("select-span", language),
        "initial": spans_offered[0],
        "options": [(one, say(f"span-{one}", language)) for one in spans_offered],
    }
    return _button(PREVIEW, here, form=[select])


def start_or_not(here: FeatureTurn, arguments: Mapping[str, Any]) -> tuple[NewButton, NewButton]:
    return _decision(START, here, arguments)


def remove_or_not(here: FeatureTurn) -> tuple[NewButton, NewButton]:
    return _decision(REMOVE, here, {}, danger=True)


def buttons_of_import(
    here: FeatureTurn, chat_import: HistoryImport, now_ms: int
) -> tuple[NewButton, ...]:
    """What can be done with an import as it is."""
    tools = _tools_for(chat_import, now_ms)
    return tuple(_button(one, here, word=_words_of(chat_import).get(one, "")) for one in tools)


def _tools_for(chat_import: HistoryImport, now_ms: int) -> tuple[str, ...]:
    if chat_import.state == "done":
        return (MORE, ASK_REMOVAL) if span_choices(chat_import, now_ms) else (ASK_REMOVAL,)
    return _TOOLS_FOR[chat_import.state]


def _words_of(chat_import: HistoryImport) -> Mapping[str, str]:
    """What tools are called where they mean something else."""
    if chat_import.state == "failed":
        return {RESUME: "retry"}
    return {ASK_REMOVAL: "cancel"} if chat_import.state in ("running", "paused") else {}


def _button(tool: str, here: FeatureTurn, *, word: str = "", **more: Any) -> NewButton:
    text = say(f"button-{word or _word(tool)}", here.language)
    payload = {"tool": tool, "text": text, "again": True, "language": here.language, **more}
    return NewButton(text, "follow_up", payload, here.chat_type, FOLLOW_UP_LIVES_S)


def _decision(
    tool: str, here: FeatureTurn, arguments: Mapping[str, Any], *, danger: bool = False
) -> tuple[NewButton, NewButton]:
    payload = {"tool": tool, "arguments": dict(arguments), "description": ""}
    group = new_button_id()
    language, chat_type = here.language, here.chat_type
    return (
        decision_button(
            say(f"button-{_word(tool)}", language),
            payload,
            "confirm",
            group_id=group,
            chat_type=chat_type,
            language=language,
            danger=danger,
        ),
        decision_button(
            say(f"button-not-{_word(tool)}", language),
            payload,
            "cancel",
            group_id=group,
            chat_type=chat_type,
            language=language,
        ),
    )


def _word(tool: str) -> str:
    return tool.removeprefix("import.")
