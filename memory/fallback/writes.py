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
LATE = RECORDS | {"log_decision"}


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
    records = json.loads(str(params["p_records"]))
    return LateWrite(
        function,
        params,
        context,
        message_ids=tuple(str(record["message_id"]) for record in records),
        people=tuple({context.actor_id, *(str(record["author_id"]) for record in records)}),
    )
