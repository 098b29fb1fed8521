"""What can be pressed on a card about an import. Pure.

What starts and what removes is for the person who was asked, once; all else for everybody who
manages the chat, again and again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.features.feature import FeatureTurn
from bot.features.history_import import card_texts
from bot.outbox.buttons import FOLLOW_UP_LIVES_S, decision
from memory.tables.buttons import NewButton, new_id
from memory.tables.imports import HistoryImport

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


def spans(chat_import: HistoryImport | None, now_ms: int) -> tuple[str, ...]:
    """How far back can be chosen: days, or everything; further than an import reaches already."""
    if chat_import and chat_import.since_ms is None:
        return ()
    oldest_ms = now_ms if not chat_import or chat_import.since_ms is None else chat_import.since_ms
    return (*(str(days) for days in _DAYS if now_ms - days * _DAY_MS < oldest_ms), EVERYTHING)


def since_ms(span: str, now_ms: int) -> int | None:
    """When such a span began; None: there is no limit."""
    return None if span == EVERYTHING else now_ms - int(span) * _DAY_MS


def preview_form(here: FeatureTurn, spans_offered: tuple[str, ...]) -> NewButton:
    """The select of how far back, and the button that shows the preview."""
    language = here.language
    select = {
        "name": SPAN,
        "label": card_texts.say("select-span", language),
        "initial": spans_offered[0],
        "options": [(one, card_texts.say(f"span-{one}", language)) for one in spans_offered],
    }
    return _button(PREVIEW, here, form=[select])


def start_or_not(here: FeatureTurn, arguments: Mapping[str, Any]) -> tuple[NewButton, NewButton]:
    return _decision(START, here, arguments)


def remove_or_not(here: FeatureTurn) -> tuple[NewButton, NewButton]:
    return _decision(REMOVE, here, {}, danger=True)


def of_import(here: FeatureTurn, chat_import: HistoryImport, now_ms: int) -> tuple[NewButton, ...]:
    """What can be done with an import as it is."""
    tools = _tools_for(chat_import, now_ms)
    return tuple(_button(one, here, word=_words_of(chat_import).get(one, "")) for one in tools)


def _tools_for(chat_import: HistoryImport, now_ms: int) -> tuple[str, ...]:
    if chat_import.state == "done":
        return (MORE, ASK_REMOVAL) if spans(chat_import, now_ms) else (ASK_REMOVAL,)
    return _TOOLS_FOR[chat_import.state]


_TOOLS_FOR: Mapping[str, tuple[str, ...]] = {
    "running": (REFRESH, PAUSE, ASK_REMOVAL),
    "paused": (RESUME, ASK_REMOVAL),
    "failed": (RESUME, ASK_REMOVAL),
    "removing": (REFRESH,),
}


def _words_of(chat_import: HistoryImport) -> Mapping[str, str]:
    """What tools are called where they mean something else."""
    if chat_import.state == "failed":
        return {RESUME: "retry"}
    return {ASK_REMOVAL: "cancel"} if chat_import.state in ("running", "paused") else {}


def _button(tool: str, here: FeatureTurn, *, word: str = "", **more: Any) -> NewButton:
    text = card_texts.say(f"button-{word or _word(tool)}", here.language)
    payload = {"tool": tool, "text": text, "again": True, "language": here.language, **more}
    return NewButton(text, "follow_up", payload, here.chat_type, FOLLOW_UP_LIVES_S)


def _decision(
    tool: str, here: FeatureTurn, arguments: Mapping[str, Any], *, danger: bool = False
) -> tuple[NewButton, NewButton]:
    payload = {"tool": tool, "arguments": dict(arguments), "description": ""}
    group = new_id()
    language, chat_type = here.language, here.chat_type
    return (
        decision(
            card_texts.say(f"button-{_word(tool)}", language),
            payload,
            "confirm",
            group_id=group,
            chat_type=chat_type,
            language=language,
            danger=danger,
        ),
        decision(
            card_texts.say(f"button-not-{_word(tool)}", language),
            payload,
            "cancel",
            group_id=group,
            chat_type=chat_type,
            language=language,
        ),
    )


def _word(tool: str) -> str:
    return tool.removeprefix("import.")
