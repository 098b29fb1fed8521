"""The calls that show whether the memory is there: as the service, and as a person.

Each has a key of its own in Supabase, and turns need both. Nothing is read but that it works.
"""

from __future__ import annotations

from memory.rpc import Call
from memory.scope import memory_context

_NOBODY = memory_context(chat_id="oc_probe", root="main", subject="ou_probe", actor="ou_probe")

PROBE: tuple[Call, ...] = (
    (
        "list_conversations",
        {
            "p_chat_id": None,
            "p_conversation_id": None,
            "p_user_id": None,
            "p_since": None,
            "p_limit": 0,
        },
        None,
    ),
    (
        "get_working_memory",
        {**_NOBODY.identity(), "p_tenant_key": _NOBODY.tenant_key},
        _NOBODY,
    ),
)
