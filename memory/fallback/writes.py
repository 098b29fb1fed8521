"""What happens outside of turns while the memory is away, to be written when it is back.

These operations can be repeated and nobody waits for their result. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from memory.scope import AgentMemoryContext, context_of_row

RECORDS = frozenset({"append_to_conversation", "continue_conversation"})
LATE = RECORDS | {"log_decision", "hear_message"}
_OF_RECORDS = ("p_records", "p_at", "p_active_since", "p_keep")


@dataclass(frozen=True, slots=True)
class LateWrite:
    """A call of one SQL function of the memory. `context` is whose token; None is the service.

    `message_ids` are the Feishu messages it is about, `people` the open_ids of who spoke in them.
    """

    function: str
    params: Mapping[str, Any]
    context: AgentMemoryContext | None
    message_ids: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    seq: int = 0

    def row(self) -> dict[str, Any]:
        """The write as the spool keeps it."""
        scope = self.context
        return {
            "function": self.function,
            "params": dict(self.params),
            "context": asdict(scope) if scope else None,
            "conversation_id": scope.conversation_id if scope else None,
            "message_ids": list(self.message_ids),
            "people": list(self.people),
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> LateWrite:
        """A write as the spool gives it."""
        context = context_of_row(row["context"]) if row["context"] else None
        return cls(row["function"], row["params"], context, seq=row["seq"])


def late_write(
    function: str, params: Mapping[str, object], context: AgentMemoryContext
) -> LateWrite | None:
    """The call as a late write; None for one that is of no use later."""
    if function not in LATE:
        return None
    if function == "log_decision":
        about = (str(params["p_message_id"]),)
        return LateWrite(function, params, context, about, (context.actor_id,))
    if function == "hear_message":  # what is decided without the memory is stored by itself
        if "p_records" not in params:
            return None
        where = {name: params[name] for name in ("p_chat_id", "p_tenant_key")}
        params = where | {name: params[name] for name in _OF_RECORDS}
        function = "append_to_conversation"
    records = json.loads(str(params["p_records"]))
    return LateWrite(
        function,
        params,
        context,
        message_ids=tuple(str(record["message_id"]) for record in records),
        people=tuple({context.actor_id, *(str(record["author_id"]) for record in records)}),
    )
