"""Sliding-window limits: so many calls in so many seconds, for each key.

Source: open.feishu.cn, “Rate limits”: for each API, app and tenant. Nearly every API page here
names 1,000 a minute and 50 a second.
"""

import math
from collections import deque
from collections.abc import Callable

PER_S = 50
PER_MINUTE = 1000
PACES = {  # calls a second where the page says otherwise
    "open_apis.basic_batch": 5,
    "open_apis.document_content": 5,
    "open_apis.get_document": 5,
    "open_apis.sheet_values": 100,
    "open_apis.get_base": 20,
    "open_apis.base_tables": 20,
    "open_apis.base_fields": 20,
    "open_apis.base_records": 20,
    "open_apis.create_task": 10,
    "open_apis.delete_task": 10,
}
MINUTE_PACES = {  # calls a minute where the page says otherwise
    "open_apis.query_comments": 100,
    "open_apis.list_replies": 100,
    "open_apis.get_node": 100,
    "open_apis.get_spreadsheet": 100,
    "open_apis.list_sheets": 100,
    "open_apis.may_view": 100,
    "open_apis.search_documents": 100,
    "open_apis.sheet_values": 6000,
}


class Limiter:
    """Counts calls per key. Not thread-safe; the platform's lock guards it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._calls: dict[tuple[str, str], deque[float]] = {}

    def allow(self, kind: str, key: str, limit: int, window_s: float = 1.0) -> bool:
        """Count one call; False when `limit` calls already lie within the window."""
        now = self._clock()
        calls = self._calls.setdefault((kind, key), deque())
        while calls and calls[0] <= now - window_s:
            calls.popleft()
        if len(calls) >= limit:
            return False
        calls.append(now)
        return True

    def wait_s(self, kind: str, key: str, window_s: float) -> int:
        """Whole seconds until the oldest counted call leaves the window."""
        calls = self._calls.get((kind, key))
        return math.ceil(calls[0] + window_s - self._clock()) if calls else 0
