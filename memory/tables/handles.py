"""What is pressed below an answer, or reacted to it: whether it helped, and Again.

These buttons carry their name only; the card on which they stand says which turn is meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from memory.origins import Origin
from memory.rpc import Rpc
from memory.scope import MAIN_ROOT, memory_context

Handle = Literal["helpful", "unhelpful", "again"]
TouchVerdict = Literal["thanks", "taken_back", "accepted", "used", "not_yours", "unknown"]


@dataclass(frozen=True, slots=True)
class Touch:
    """A press as Feishu reports it: by whom, on which card, in which chat."""

    handle: Handle
    chat_id: str
    message_id: str
    operator_id: str
    tenant_key: str


@dataclass(frozen=True, slots=True)
class Touched:
    """What became of it. For `again`: the turn of the card, and what is asked in it."""

    verdict: TouchVerdict
    turn_id: str = ""
    conversation_id: str = ""
    subject: str = ""
    chat_type: str | None = ""
    question: str | None = ""

    def origin(self) -> Origin:
        """Of the turn that `again` leads to."""
        return Origin("again", self.turn_id)


class HandleStore:
    """Each method is one round trip and raises `StoreError`."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def press(self, touch: Touch) -> Touched:
        """Keeps feedback; of `again` only says what it would lead to."""
        presser = memory_context(
            chat_id=touch.chat_id,
            root=MAIN_ROOT,
            subject=touch.operator_id,
            actor=touch.operator_id,
            tenant_key=touch.tenant_key,
        )
        params = {f"p_{name}": value for name, value in asdict(touch).items()}
        return Touched(**await self._rpc.call("press_handle", params, presser))

    async def react(
        self, message_id: str, open_id: str, tenant_key: str, *, helpful: bool, is_withdrawn: bool
    ) -> TouchVerdict:
        """For the service, since the event names no chat: a reaction, or that it is
        `is_withdrawn`."""
        params = {
            "p_message_id": message_id,
            "p_open_id": open_id,
            "p_tenant_key": tenant_key,
            "p_helpful": helpful,
            "p_gone": is_withdrawn,
        }
        row = await self._rpc.call("note_reaction", params, None)
        verdict: TouchVerdict = row["verdict"] if row else "unknown"
        return verdict

    async def card_to_redraw(self, message_id: str, tenant_key: str) -> Mapping[str, Any] | None:
        """For the service: a card of an answer with its buttons, as it is to be drawn now."""
        params = {"p_message_id": message_id, "p_tenant_key": tenant_key}
        row: Mapping[str, Any] | None = await self._rpc.call("card_to_redraw", params, None)
        return row
