"""Private knowledge in public places: what is there, was it offered, and what was then shown?

All calls are made with a context where only the person reads (`memory.scope.private_context`), are
one round trip and raise `StoreError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memory.models import Origin
from memory.rpc import Rpc, call_as
from memory.scope import AgentMemoryContext, private_context
from memory.tables.cards import NewButton
from memory.text import as_json


def offer_origin(turn_id: str) -> Origin:
    """The turn that offers a private answer to the question `turn_id`."""
    return Origin("offer", turn_id)


@dataclass(frozen=True, slots=True)
class PrivateSource:
    """What a person told the bot: a message (of one about a file with the answer), a fact as
    `key: value`, or a note."""

    told: str
    kind: Literal["said", "fact", "note"]


@dataclass(frozen=True, slots=True)
class ComparedTerms:
    """Words of a text, as recall cuts them: by which one text is seen to tell another, and those of
    everyday talk."""

    telling: frozenset[str]
    everyday: frozenset[str]


class PrivateStore:
    """Private look-ups over the memory's transports."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def place(self, own: AgentMemoryContext, of_turn: str = "") -> AgentMemoryContext:
        """The main conversation of the p2p chat of the person whose own place this is; that place
        where they have no p2p chat yet. What they were shown `of_turn` before stays where it is."""
        chat_id: str | None = await call_as(
            self._rpc,
            "p2p_chat",
            own,
            p_tenant_key=own.tenant_key,
            p_parent_id=of_turn or None,
        )
        return private_context(own.actor_id, own.tenant_key, own.actor_tenant, chat_id or "")

    async def sources(
        self, context: AgentMemoryContext, question: str, *, asked_in: str
    ) -> tuple[PrivateSource, ...]:
        """What the person told the bot where the chat `asked_in` cannot read it, and that shares a
        word with `question`; the most of them first."""
        rows = await call_as(
            self._rpc,
            "private_sources",
            context,
            p_tenant_key=context.tenant_key,
            p_query=question,
            p_but_chat_id=asked_in,
        )
        return tuple(PrivateSource(**row) for row in rows)

    async def terms(self, context: AgentMemoryContext, texts: Sequence[str]) -> list[ComparedTerms]:
        """The words by which these texts, at most 40, are compared, in their order."""
        rows = await call_as(self._rpc, "compared_terms", context, p_texts=as_json(list(texts)))
        return [
            ComparedTerms(**{name: frozenset(words) for name, words in row.items()}) for row in rows
        ]

    async def may_read(self, context: AgentMemoryContext, turn_id: str, chat_id: str) -> bool:
        """Whether the person, alone, may be told of the question `turn_id` of that chat."""
        is_readable = await call_as(
            self._rpc,
            "said_message",
            context,
            p_tenant_key=context.tenant_key,
            p_chat_id=chat_id,
            p_message_id=turn_id,
        )
        return is_readable is not None

    async def offer(
        self, context: AgentMemoryContext, turn_id: str, button: NewButton, *, thread: str
    ) -> bool:
        """Stores the button that offers to show it. False: that was done before for this turn, or
        for another of the same `thread` (the group, of its main chat) in the last hour."""
        first: bool = await call_as(
            self._rpc,
            "offer_private",
            context,
            p_tenant_key=context.tenant_key,
            p_turn_id=turn_id,
            p_button=as_json(button.row()),
            p_offer_id=offer_origin(turn_id).turn_id,
            p_thread=thread,
        )
        return first

    async def keep_offer(self, context: AgentMemoryContext, turn_id: str, message_id: str) -> bool:
        """The offer to the question `turn_id` is shown by the card `message_id`, and goes with it.
        False: the question is gone already, and the card is going to be withdrawn."""
        is_stored: bool = await call_as(
            self._rpc,
            "keep_offer",
            context,
            p_tenant_key=context.tenant_key,
            p_turn_id=turn_id,
            p_message_id=message_id,
        )
        return is_stored

    async def shown_cards(self, context: AgentMemoryContext, turn_id: str) -> tuple[str, ...]:
        """The cards of the private answer `turn_id`; none where it is gone."""
        cards: list[str] = await call_as(
            self._rpc,
            "private_reply",
            context,
            p_tenant_key=context.tenant_key,
            p_turn_id=turn_id,
        )
        return tuple(cards)

    async def draw_on(
        self, context: AgentMemoryContext, turn_id: str, sources: Sequence[str], *, with_notes: bool
    ) -> None:
        """The answer of `turn_id` was given these turns, the person's lasting facts and,
        `with_notes`, their notes: it goes when one of the messages is taken back. One that is gone
        already cancels the turn."""
        await call_as(
            self._rpc,
            "draw_on",
            context,
            p_tenant_key=context.tenant_key,
            p_turn_id=turn_id,
            p_sources=as_json(list(sources)),
            p_with_notes=with_notes,
        )
