"""Cards that are still being written: kept from before they are sent until they are finished.

Numbers: Feishu wants every operation on a card to have a greater `sequence` than the one before.
Whoever works on a card gets a block of numbers of their own, above all that were given before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memory.rpc import Rpc, call_as
from memory.scope import AgentMemoryContext, context_of_row


@dataclass(frozen=True, slots=True)
class OpenCard:
    """A CardKit card that answers `reply_to`. `numbers` are the sequence numbers to use.

    `message_id` is the message that shows it: None while it is not known to be sent. `in_thread`
    is how the reply was asked for.
    """

    turn_id: str
    context: AgentMemoryContext
    card_id: str
    reply_to: str
    in_thread: bool
    numbers: range
    message_id: str | None = None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> OpenCard:
        """A card as the database gives it."""
        return cls(
            turn_id=row["turn_id"],
            context=context_of_row(row),
            card_id=row["card_id"],
            reply_to=row["reply_to"],
            in_thread=row["in_thread"],
            numbers=range(row["first"], row["sequence"] + 1),
            message_id=row["message_id"],
        )


class CardStore:
    """Cards over the memory's transports. Each method is one round trip and raises `StoreError`."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def keep(
        self,
        context: AgentMemoryContext,
        *,
        turn_id: str,
        card_id: str,
        reply_to: str,
        in_thread: bool,
        stop_id: str | None = None,
    ) -> OpenCard:
        """Keeps a new card of an open turn, with the id of the button that stops it.

        Returned is the card that counts, an earlier one if the turn has any. Raises `TurnUnknown`
        when the turn is over.
        """
        params = {
            "p_card_id": card_id,
            "p_reply_to": reply_to,
            "p_in_thread": in_thread,
            "p_stop_id": stop_id,
        }
        return OpenCard.from_row(await self._call("keep_card", context, turn_id, params))

    async def resume(self, context: AgentMemoryContext, *, turn_id: str) -> OpenCard | None:
        """The card that an earlier attempt left unfinished, with numbers above all it used."""
        row = await self._call("resume_card", context, turn_id, {})
        return OpenCard.from_row(row) if row else None

    async def sent(self, card: OpenCard, message_id: str) -> None:
        """The card is shown by `message_id` and goes on."""
        await self._note(card, message_id, streaming=True)

    async def closed(self, card: OpenCard) -> None:
        """The card is finished, or was given up: nobody goes on with it."""
        await self._note(card, None, streaming=False)

    async def take_left(
        self, *, older_s: int, untouched_s: int, limit: int = 20
    ) -> tuple[OpenCard, ...]:
        """For the service: cards that were opened `older_s` ago or earlier and that nobody has
        worked on for `untouched_s`. Other workers do not get them meanwhile."""
        ages = {"p_older_s": older_s, "p_untouched_s": untouched_s, "p_limit": limit}
        return tuple(map(OpenCard.from_row, await self._rpc.call("take_left_cards", ages, None)))

    async def _note(self, card: OpenCard, message_id: str | None, *, streaming: bool) -> None:
        params = {"p_message_id": message_id, "p_streaming": streaming}
        await self._call("note_card", card.context, card.turn_id, params)

    async def _call(
        self,
        function: str,
        context: AgentMemoryContext,
        turn_id: str,
        params: Mapping[str, object],
    ) -> Any:
        return await call_as(self._rpc, function, context, p_turn_id=turn_id, **params)
