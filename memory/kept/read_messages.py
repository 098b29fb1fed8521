"""Which messages besides the question an answer was given: it goes when one is taken back."""

from __future__ import annotations

import json
from collections.abc import Sequence

from memory.rpc import Rpc, call_as
from memory.scope import AgentMemoryContext


async def note_read_messages(
    rpc: Rpc, context: AgentMemoryContext, turn_id: str, messages: Sequence[str]
) -> bool:
    """Notes the message_ids (at most 50) with the turn, which is not answered yet. False: one of
    them was taken back, and nothing of them may be told. One round trip; raises `StoreError`."""
    still_there: bool = await call_as(
        rpc,
        "note_read_messages",
        context,
        p_turn_id=turn_id,
        p_messages=json.dumps(list(messages)),
    )
    return still_there
