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

# These functions are stable in SQL: a second call changes nothing.
READS = frozenset(
    "chat_is_quiet compared_terms conversations_to_embed count_embeddings count_imported"
    " count_people count_person count_user_tokens digest_material documents_behind"
    " documents_behind_sources due_timer export_person find_facts former_facts"
    " get_chat_rules get_digest get_import get_user_seal get_user_tokens get_working_memory"
    " has_answered_in import_by_id inspect_chat inspect_timers is_topic_group known_chats"
    " list_conversations list_decisions list_feedback list_imports list_messages"
    " list_orphans list_people list_tables list_timers list_unplaced list_working_memory"
    " load_conversation manages_chat memory_overview messages_gone messages_to_embed"
    " note_registry p2p_chat pending_confirmation pending_replies people_named private_reply"
    " recall recent_activity running_turns said_message turns_checked user_tokens_to_tend".split()
)


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
