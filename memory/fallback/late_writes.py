"""Writes beside turns that the memory can take later: they repeat, and nobody waits for a result.

Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memory.scope import AgentMemoryContext

_RECORDS = frozenset({"append_to_conversation", "continue_conversation"})
_OF_RECORDS = ("p_chat_id", "p_tenant_key", "p_records", "p_at", "p_active_since", "p_keep")


@dataclass(frozen=True, slots=True)
class LateWrite:
    """A call of one SQL function of the memory.

    `message_ids` are the Feishu messages that it tells of, `people` the open_ids of their authors.
    """

    function: str
    params: Mapping[str, Any]
    message_ids: tuple[str, ...] = ()
    people: tuple[str, ...] = ()


def late_write(
    function: str, params: Mapping[str, object], context: AgentMemoryContext
) -> LateWrite | None:
    """The call as a late write; None for a call that is of no use later."""
    if function == "log_decision":
        about = (str(params["p_message_id"]),)
        return LateWrite(function, params, about, (context.actor_id,))
    if function == "hear_message" and "p_records" in params:
        # Without the memory the decision is made, and stored, by a call of its own.
        function = "append_to_conversation"
    if function not in _RECORDS:
        return None
    if function == "append_to_conversation":  # what was said before is told with the answer
        params = {name: params[name] for name in _OF_RECORDS}
    records = json.loads(str(params["p_records"]))
    return LateWrite(
        function,
        params,
        message_ids=tuple(str(record["message_id"]) for record in records),
        people=tuple({context.actor_id, *(str(record["author_id"]) for record in records)}),
    )
