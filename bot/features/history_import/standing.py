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


def share_read(found: HistoryImport) -> float | None:
    """How much of the chat's own pages was read, 0 to 1; None where that is not known. Threads,
    which come after them, do not count."""
    if found.phase != "chat" or found.state == "done":
        return 1.0
    return min(found.pages * _PER_PAGE / found.estimated, 0.99) if found.estimated else None


def expected_end(found: HistoryImport, now: datetime, page_s: float) -> datetime | None:
    """When the chat's own pages are read at `page_s` seconds each; None where that is not known."""
    if found.state != "running" or found.phase != "chat" or not found.estimated:
        return None
    pages = max(math.ceil(found.estimated / _PER_PAGE) - found.pages, 1)
    return now + timedelta(seconds=max(pages * page_s, 60))
