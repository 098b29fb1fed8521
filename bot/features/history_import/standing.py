"""How an import stands: how much of it is read, and when it ends. Pure."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from bot.settings import Settings
from memory.tables.imports import HistoryImport

_PER_PAGE = 50  # messages; Feishu gives no more
_OF_CALLS = 5  # an import gets every so many-th call of the app's
_PAGE_S = 0.35  # a call, and keeping what it brought


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
