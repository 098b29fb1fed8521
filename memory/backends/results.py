"""Tells a result of Supabase's API from a success without one. Pure.

A gateway in between can answer 200 with an empty or shortened body. The function may have run, so
the outcome is unknown: the callers handle that as they handle a time-out.
"""

from __future__ import annotations

import json
from typing import Any

from memory.errors import StoreUnavailable

# These functions never return null. A turn depends on what they return.
_OBJECTS = frozenset(
    {
        "open_turn",
        "begin_turn",
        "record_reply",
        "record_reply_with_buttons",
        "preface_reply",
        "mark_sent",
        "mark_sent_and_tell",
        "get_working_memory",
        "merge_working_memory",
        "memory_overview",
    }
)
_LISTS = frozenset({"list_conversations", "list_messages", "running_turns", "recall"})


def require_json(function: str, body: bytes) -> None:
    """Raises `StoreUnavailable` if the body of a response is not JSON."""
    try:
        json.loads(body)
    except ValueError as exc:
        raise _missing(function) from exc


def require_shape(function: str, result: Any) -> Any:
    """Returns the result. Raises `StoreUnavailable` if it is missing."""
    kind = dict if function in _OBJECTS else list if function in _LISTS else object
    if not isinstance(result, kind):
        raise _missing(function)
    return result


def _missing(function: str) -> StoreUnavailable:
    return StoreUnavailable(f"{function}: no result came, so the outcome is unknown")
