"""Notes of a person, and the registry of the notes a conversation has worked with.

A note belongs to its author, the sender; it is read where it was written or shared. Every method is
one SQL function and one round trip; each enters what it touched into the registry.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory.errors import NoteInvalid, NoteNotFound
from memory.models import QuestionEmbedding
from memory.rpc import Rpc, call_as
from memory.scope import AgentMemoryContext
from memory.text import HAN, as_json, han_pairs

_ID_BYTES = 7
_ID_LENGTH = 10
_WORDS, _WORD_LENGTH = 40, 100  # of a search
_LATIN = re.compile(rf"[^\W_{HAN}]+")
_NOT_SEARCHED = frozenset("a an the my note notes of on in for with about and or to 笔记".split())


@dataclass(frozen=True, slots=True)
class Note:
    """One note. Times are ISO 8601; `shared_chat_id` is the chat that may read it, if any.

    `by_meaning`: a search found it by what it was made from, not by its words.
    """

    id: str
    user_id: str
    title: str
    body: str
    tags: tuple[str, ...]
    shared_chat_id: str | None
    created_at: str
    updated_at: str
    by_meaning: bool = False


@dataclass(frozen=True, slots=True)
class NoteChange:
    """What an update did: the note as it is now, and what is different."""

    note: Note
    old_title: str
    body_changed: bool
    added: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RegisteredNote:
    """A note of a conversation's working set.

    `ordinal` counts from 1: first those created `here`, in this conversation, then those of others
    that were seen in it, each in order of creation. `shown` is the place in the list that a card
    showed last. `recency` 1 is the note used last; None: only listed so far.

    `elsewhere`: the conversation has none, and these are the most used ones of other threads.
    """

    id: str
    title: str
    tags: tuple[str, ...]
    ordinal: int
    recency: int | None
    last_action: str
    here: bool = True
    shown: int | None = None
    elsewhere: bool = False


def note_source(id: str) -> str:
    """The id by which an answer was given a note (`bot_private.noted_sources`)."""
    return f"note:{id}"


def note_id(*parts: str) -> str:
    """The id of a new note: the same for the same parts, random without any."""
    seed = "\x1f".join(parts).encode() if parts else secrets.token_bytes(32)
    digest = hashlib.sha256(seed).digest()[:_ID_BYTES]
    return "note_" + base64.b32encode(digest).decode().lower()[:_ID_LENGTH]


def search_terms(query: str) -> list[str]:
    """Words of a query in lower case; of Chinese text the pairs of neighbouring characters."""
    text = query.lower()
    words = [word for word in _LATIN.findall(text) if word not in _NOT_SEARCHED]
    words += [pair for pair in han_pairs(text) if pair not in _NOT_SEARCHED]
    return list(dict.fromkeys(word[:_WORD_LENGTH] for word in words))[:_WORDS]


def registered_notes(rows: Sequence[Mapping[str, Any]]) -> tuple[RegisteredNote, ...]:
    """The entries of `note_registry` (SQL), in their order."""
    return tuple(
        RegisteredNote(
            id=row["id"],
            title=row["title"],
            tags=tuple(row["tags"]),
            ordinal=row["ordinal"],
            recency=row["recency"],
            last_action=row["last_action"],
            # the two queries of the registry do not give the same fields
            here=row.get("here", True),
            shown=row.get("shown"),
            elsewhere=row.get("elsewhere", False),
        )
        for row in rows
    )


class NoteStore:
    """Notes over the same transports as the rest of the memory."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def create(
        self,
        context: AgentMemoryContext,
        *,
        title: str,
        body: str = "",
        tags: Sequence[str] = (),
        id: str | None = None,
        turn_id: str = "",
    ) -> Note:
        """Keeps a note. With the `id` of a note made before, that note is returned as it is.

        `turn_id` is the message it is made from: taken back, the note goes. Raises `TakenBack`.
        """
        new_id = id or note_id()
        fields = {
            "p_note_id": new_id,
            "p_title": title,
            "p_body": body,
            "p_tags": as_json(list(tags)),
            "p_turn_id": turn_id or None,
        }
        return _note(await self._call("create_note", context, fields))

    async def get(self, context: AgentMemoryContext, id: str) -> Note:
        """Raises `NoteNotFound`."""
        return _note(await self._call("get_note", context, {"p_note_id": id}))

    async def list(
        self, context: AgentMemoryContext, *, tags: Sequence[str] = (), limit: int = 50
    ) -> tuple[Note, ...]:
        """The newest `limit` notes that have all `tags`, in order of creation."""
        rows = await self._call(
            "list_notes", context, {"p_tags": as_json(list(tags)), "p_limit": limit}
        )
        return tuple(map(_note, rows))

    async def search(
        self,
        context: AgentMemoryContext,
        query: str,
        *,
        limit: int = 10,
        likeness: QuestionEmbedding | None = None,
    ) -> tuple[Note, ...]:
        """Notes with words of `query` in title, tags or body, in any form, best first.

        With `likeness`, the query's, and no title or tag that fits, then the most alike ones.
        """
        params: dict[str, object] = {"p_terms": as_json(search_terms(query)), "p_limit": limit}
        if likeness:
            params |= {"p_model": likeness.model, "p_embedding": likeness.embedding}
        return tuple(map(_note, await self._call("search_notes", context, params)))

    async def update(
        self,
        context: AgentMemoryContext,
        id: str,
        *,
        title: str | None = None,
        body: str | None = None,
        add_tags: Sequence[str] = (),
        remove_tags: Sequence[str] = (),
        turn_id: str = "",
    ) -> NoteChange:
        """Changes what is given, for the message `turn_id`: taken back, so is the change. Raises
        `NoteNotFound`, `NoteInvalid` and `TakenBack`."""
        row = await self._call(
            "update_note",
            context,
            {
                "p_note_id": id,
                "p_title": title,
                "p_body": body,
                "p_add_tags": as_json(list(add_tags)),
                "p_remove_tags": as_json(list(remove_tags)),
                "p_turn_id": turn_id or None,
            },
        )
        return NoteChange(
            note=_note(row["note"]),
            old_title=row["old_title"],
            body_changed=row["body_changed"],
            added=tuple(row["added"]),
            removed=tuple(row["removed"]),
        )

    async def share(self, context: AgentMemoryContext, id: str, *, is_shared: bool = True) -> Note:
        """Lets everyone in this chat read the note, or only its owner again."""
        params = {"p_note_id": id, "p_share": is_shared}
        return _note(await self._call("share_note", context, params))

    async def registry(self, context: AgentMemoryContext) -> tuple[RegisteredNote, ...]:
        """The notes the sender worked with in this conversation; else those used elsewhere."""
        return registered_notes(await self._call("note_registry", context, {}))

    async def _call(
        self,
        function: str,
        context: AgentMemoryContext,
        params: Mapping[str, object],
    ) -> Any:
        place = {"p_tenant_key": context.tenant_key, "p_chat_id": context.chat_id}
        try:
            return await call_as(self._rpc, function, context, **place, **params)
        except (NoteNotFound, NoteInvalid) as exc:
            # To the model, which reads it, the name of a function says nothing.
            raise type(exc)(str(exc).removeprefix(f"{function}: "), code=exc.code) from exc


def _note(row: Mapping[str, Any]) -> Note:
    return Note(**{**row, "tags": tuple(row["tags"])})
