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


def spans(found: HistoryImport | None, now_ms: int) -> tuple[str, ...]:
    """How far back can be chosen: days, or everything; further than an import reaches already."""
    if found and found.since_ms is None:
        return ()
    reached = now_ms if not found or found.since_ms is None else found.since_ms
    return (*(str(days) for days in _DAYS if now_ms - days * _DAY_MS < reached), EVERYTHING)


def since_ms(span: str, now_ms: int) -> int | None:
    """When such a span began; None: there is no limit."""
    return None if span == EVERYTHING else now_ms - int(span) * _DAY_MS


def preview_form(here: FeatureTurn, offered: tuple[str, ...]) -> NewButton:
    """The select of how far back, and the button that shows the preview."""
    language = here.language
    select = {
        "name": SPAN,
        "label": card_texts.say("select-span", language),
        "initial": offered[0],
        "options": [(one, card_texts.say(f"span-{one}", language)) for one in offered],
    }
    return _button(PREVIEW, here, form=[select])


def start_or_not(here: FeatureTurn, arguments: Mapping[str, Any]) -> tuple[NewButton, NewButton]:
    return _decision(START, here, arguments)


def remove_or_not(here: FeatureTurn) -> tuple[NewButton, NewButton]:
    return _decision(REMOVE, here, {}, danger=True)


def of_import(here: FeatureTurn, found: HistoryImport, now_ms: int) -> tuple[NewButton, ...]:
    """What can be done with an import as it is."""
    tools = _tools_for(found, now_ms)
    return tuple(_button(one, here, word=_words_of(found).get(one, "")) for one in tools)


def _tools_for(found: HistoryImport, now_ms: int) -> tuple[str, ...]:
    if found.state == "done":
        return (MORE, ASK_REMOVAL) if spans(found, now_ms) else (ASK_REMOVAL,)
    return _TOOLS_FOR[found.state]


_TOOLS_FOR: Mapping[str, tuple[str, ...]] = {
    "running": (REFRESH, PAUSE, ASK_REMOVAL),
    "paused": (RESUME, ASK_REMOVAL),
    "failed": (RESUME, ASK_REMOVAL),
    "removing": (REFRESH,),
}


def _words_of(found: HistoryImport) -> Mapping[str, str]:
    """What tools are called where they mean something else."""
    if found.state == "failed":
        return {RESUME: "retry"}
    return {ASK_REMOVAL: "cancel"} if found.state in ("running", "paused") else {}


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
