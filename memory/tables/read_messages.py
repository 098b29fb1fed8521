"""Which messages besides the question an answer was given: it goes when one is taken back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from memory.rpc import Rpc, call_as
from memory.scope import AgentMemoryContext
from memory.text import as_json

_MOST = 30_000  # characters, of all texts


def read_source(message_id: str) -> str:
    """The id by which an answer was given what came with another message, while the memory is away
    and `note_read_messages` cannot be called."""
    return f"read:{message_id}"


async def note_read_messages(
    rpc: Rpc,
    context: AgentMemoryContext,
    turn_id: str,
    messages: Sequence[str],
    texts: Mapping[str, str] | None = None,
) -> bool:
    """Notes the message_ids (at most 50) with the turn, which is not answered yet.

    `texts`: what was read of them, and of what the question itself brought, by message_id; "" of a
    picture. Keyed hashes of its words are stored, which show whether a later answer tells it.
    False: one of the messages was taken back, and nothing of them may be told. One round trip;
    raises `StoreError`.
    """
    still_there: bool = await call_as(
        rpc,
        "note_read_messages",
        context,
        p_turn_id=turn_id,
        p_messages=json.dumps(list(messages)),
        **({"p_texts": as_json(_cut(texts))} if texts else {}),
    )
    return still_there


def _cut(texts: Mapping[str, str]) -> dict[str, str]:
    """An equal share of what may be sent for each."""
    share = _MOST // len(texts)
    return {message_id: text[:share] for message_id, text in texts.items()}
