"""Stores which messages and documents an answer was given, so that it goes with them.

The texts are not stored. Keyed hashes of their distinctive words are, and show whether a later
answer repeats them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from memory.rpc import Rpc, call_as
from memory.scope import AgentMemoryContext, ChatType, FeishuPerson
from memory.text import as_json

_MOST_DOCUMENT_CHARACTERS = 30_000  # characters of a document whose words are noted

_MOST_CHARACTERS = 30_000  # characters, of all texts


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A document that `actor` had read in a chat: its `kind` and `token` as its link names them."""

    id: int
    tenant_key: str
    chat_id: str
    chat_type: ChatType
    kind: str
    token: str
    actor_id: str
    actor_tenant: str = ""

    @property
    def source(self) -> str:
        """The id by which answers were given it, and are taken back."""
        return f"doc:{self.id}"

    @property
    def actor(self) -> FeishuPerson:
        return FeishuPerson(self.actor_tenant or self.tenant_key, self.actor_id)


@dataclass(frozen=True, slots=True)
class DocumentOfSource:
    """`document` is told of by `source`, an id of what a prompt is made of. `age_s`: how long ago
    Feishu last said that everybody there can open it; None: never. `closed`: it said since that
    they cannot."""

    source: str
    document: SourceDocument
    age_s: float | None = None
    closed: bool = False


class SourceDocumentStore:
    """Documents over the memory's transports."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def note(
        self, context: AgentMemoryContext, turn_id: str, kind: str, token: str, text: str
    ) -> str | None:
        """The turn, not answered yet, is given it. Returns the id by which it is taken back; None:
        the turn is over."""
        source: str | None = await call_as(
            self._rpc,
            "note_document",
            context,
            p_turn_id=turn_id,
            p_kind=kind,
            p_token=token,
            p_text=text[:_MOST_DOCUMENT_CHARACTERS],
        )
        return source

    async def behind(
        self, context: AgentMemoryContext, turn_id: str, text: str
    ) -> list[tuple[str, str]]:
        """Kind and token of the documents that an answer of the person tells of in `text`: those
        that its turn read, and of those that earlier turns read whose words it says."""
        rows = await call_as(
            self._rpc,
            "documents_behind",
            context,
            p_turn_id=turn_id,
            p_text=text[:_MOST_DOCUMENT_CHARACTERS],
        )
        return [(row["kind"], row["token"]) for row in rows]

    async def take_due(self, after_s: float, limit: int) -> list[SourceDocument]:
        """Those that nobody has looked at for so long; this counts as a look."""
        params = {"p_after_s": after_s, "p_limit": limit}
        rows = await self._rpc.call("take_told_documents", params, None)
        return [SourceDocument(**row) for row in rows]

    async def behind_sources(
        self, tenant_key: str, sources: Collection[str]
    ) -> list[DocumentOfSource]:
        """The documents that these tell of, ids as an answer notes what it was given."""
        params = {"p_tenant_key": tenant_key, "p_sources": as_json(sorted(sources))}
        rows = await self._rpc.call("documents_behind_sources", params, None)
        return [
            DocumentOfSource(
                row.pop("source"),
                age_s=row.pop("age_s"),
                closed=row.pop("closed"),
                document=SourceDocument(**row),
            )
            for row in rows
        ]

    async def found_open(self, source: str, ago_s: float) -> None:
        """Feishu said so long ago that everybody there can open the document of that `source`."""
        params = {"p_id": int(source.removeprefix("doc:")), "p_ago_s": ago_s}
        await self._rpc.call("note_document_open", params, None)

    async def drop(self, document: SourceDocument) -> None:
        """It is closed, and what tells of it is taken back."""
        await self._rpc.call("drop_told_document", {"p_id": document.id}, None)


def read_source_id(message_id: str) -> str:
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
        **({"p_texts": as_json(_shared_evenly(texts))} if texts else {}),
    )
    return still_there


def _shared_evenly(texts: Mapping[str, str]) -> dict[str, str]:
    """An equal share of what may be sent for each."""
    share = _MOST_CHARACTERS // len(texts)
    return {message_id: text[:share] for message_id, text in texts.items()}
