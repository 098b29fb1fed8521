"""Says how far an import is, and why a chat's history cannot be imported. Pure."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Literal

from bot.feishu.errors import SCOPE_OF_CHAT, Action, FeishuError
from bot.settings import Settings
from memory.tables.imports import HistoryImport

_PER_PAGE = 50  # messages; Feishu gives no more
_OF_CALLS = 5  # an import gets every so many-th call of the app's
_PAGE_S = 0.35  # a call, and keeping what it brought

# not_offered: this installation keeps no memory of groups. secret_mode: the group forbids copying.
# no_scope: the app lacks im:message.group_msg. not_in_chat: the bot is not there (any more).
# unintelligible: Feishu's pages lead nowhere. refused: another refusal. defect: an error of ours.
Refusal = Literal[
    "not_offered",
    "secret_mode",
    "no_scope",
    "not_in_chat",
    "unintelligible",
    "refused",
    "defect",
]
_SECRET_MODE, _SCOPE = 231203, 99991672
_OUT = frozenset({Action.TERMINAL_CHAT, Action.TERMINAL_USER})
_GONE_THREADS = frozenset({Action.WITHOUT_THREAD, Action.TERMINAL_MESSAGE})


def seconds_a_page(settings: Settings) -> float:
    """How long an import takes for a page of the history."""
    return max(_PAGE_S, _OF_CALLS / settings.feishu_calls_per_second)


def share_read(chat_import: HistoryImport) -> float | None:
    """How much of the chat's own pages was read, 0 to 1; None where that is not known. Threads,
    which come after them, do not count."""
    if chat_import.phase != "chat" or chat_import.state == "done":
        return 1.0
    return (
        min(chat_import.pages * _PER_PAGE / chat_import.estimated, 0.99)
        if chat_import.estimated
        else None
    )


def expected_end(chat_import: HistoryImport, now: datetime, page_s: float) -> datetime | None:
    """When the chat's own pages are read at `page_s` seconds each; None where that is not known."""
    if chat_import.state != "running" or chat_import.phase != "chat" or not chat_import.estimated:
        return None
    pages = max(math.ceil(chat_import.estimated / _PER_PAGE) - chat_import.pages, 1)
    return now + timedelta(seconds=max(pages * page_s, 60))


def reason_against(settings: Settings) -> Refusal | None:
    """Why there is no import here at all; None where there is."""
    return None if settings.sharing == "chat" else "not_offered"


def import_refusal(error: FeishuError) -> Refusal | None:
    """What Feishu's error means for an import; None where trying again later may help."""
    if error.code == _SECRET_MODE:
        return "secret_mode"
    if error.code in (SCOPE_OF_CHAT, _SCOPE):
        return "no_scope"
    if error.action in _OUT:
        return "not_in_chat"
    return None if error.action.may_pass else "refused"


def is_hidden_thread(error: FeishuError) -> bool:
    """Whether it says only that one thread is not shown to the bot, or is no more."""
    return error.action in _GONE_THREADS
