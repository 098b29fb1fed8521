"""A chat's history from before the bot came: asked for, stored page by page, taken out again.

Who may read what is decided in SQL (`bot_private.readable_imports`). Methods raise the errors of
`memory.errors`. Times are ms since epoch. A `Chat` is (tenant_key, chat_id).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from memory.rpc import Rpc
from memory.scope import AgentMemoryContext, ChatType
from memory.text import as_json

Chat = tuple[str, str]
State = Literal["running", "paused", "removing", "done", "failed"]
Phase = Literal["chat", "threads", "finishing"]

PER_PAGE = 50  # messages; Feishu gives no more
_REMOVED_AT_ONCE = 5000


@dataclass(frozen=True, slots=True)
class HistoryImport:
    """The import of a chat. `started_by` is an open_id, "" for an operator; `since_ms` None:
    everything. `position` is where the phase goes on, "" at its start. `report` counts what was not
    kept, by kind; `error` is a kind, "" for none."""

    id: int
    tenant_key: str
    chat_id: str
    chat_type: ChatType
    started_by: str
    since_ms: int | None
    until_ms: int
    state: State
    phase: Phase
    position: str
    estimated: int
    pages: int
    messages: int
    report: Mapping[str, int]
    error: str
    started_ms: int
    updated_ms: int
    finished_ms: int | None

    @property
    def chat(self) -> Chat:
        return self.tenant_key, self.chat_id

    @property
    def share_read(self) -> float | None:
        """The share of the chat's own pages that was read, 0 to 1; None if it is not known. Threads
        are read after them and do not count."""
        if self.phase != "chat" or self.state == "done":
            return 1.0
        return min(self.pages * PER_PAGE / self.estimated, 0.99) if self.estimated else None

    def expected_end(self, now: datetime, page_s: float) -> datetime | None:
        """When the chat's own pages will be read at `page_s` seconds each; None if it is not
        known."""
        if self.state != "running" or self.phase != "chat" or not self.estimated:
            return None
        pages = max(math.ceil(self.estimated / PER_PAGE) - self.pages, 1)
        return now + timedelta(seconds=max(pages * page_s, 60))


@dataclass(frozen=True, slots=True)
class ImportedMessage:
    """A message as it is kept. `root_id` is "" outside of threads; `author_id` of a bot is its
    app_id; `position` is its number in the chat, 0 where Feishu does not tell it."""

    message_id: str
    root_id: str
    author_id: str
    author_name: str
    sent_ms: int
    content: str
    position: int = 0


@dataclass(frozen=True, slots=True)
class MembershipNotice:
    """What a message of the system says: somebody of this name joined, or left."""

    name: str
    at_ms: int
    joined: bool


@dataclass(frozen=True, slots=True)
class Page:
    """What one page of Feishu's list held. `threads` are thread_ids; `counts` are added to the
    report; `next_position` is "" where the chat, or the thread, is over."""

    messages: Sequence[ImportedMessage] = ()
    threads: Sequence[str] = ()
    memberships: Sequence[MembershipNotice] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    next_position: str = ""


class ImportStore:
    """Imports over the memory's transports. Where a method takes a `context`, None is the operator;
    a person has to manage the chat to change anything (else `AccessDenied`)."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def start(
        self,
        chat: Chat,
        chat_type: ChatType,
        *,
        context: AgentMemoryContext | None,
        since_ms: int | None,
        until_ms: int,
        estimate: int = 0,
    ) -> HistoryImport:
        """Begins the chat's import, or lets it reach further back and reads it again."""
        params = {
            "p_chat_type": chat_type,
            "p_since_ms": since_ms,
            "p_until_ms": until_ms,
            "p_estimated": estimate,
        }
        row = await self._rpc.call("start_import", {**_of(chat), **params}, context)
        return _import(row)

    async def of_chat(self, chat: Chat, context: AgentMemoryContext | None) -> HistoryImport | None:
        """The chat's import, for whoever is in it."""
        return _import_or_none(await self._rpc.call("get_import", _of(chat), context))

    async def pause(self, chat: Chat, context: AgentMemoryContext | None) -> HistoryImport | None:
        return await self._set_state(chat, context, "paused")

    async def resume(self, chat: Chat, context: AgentMemoryContext | None) -> HistoryImport | None:
        """Also after a failure."""
        return await self._set_state(chat, context, "running")

    async def remove(self, chat: Chat, context: AgentMemoryContext | None) -> HistoryImport | None:
        """Nothing of it is read from now on; `remove_some` deletes it."""
        return await self._set_state(chat, context, "removing")

    async def own_messages(self, context: AgentMemoryContext) -> int:
        """How many messages of the sender the import of this chat holds."""
        chat = (context.tenant_key, context.chat_id)
        return int(await self._rpc.call("count_imported", _of(chat), context))

    async def get(self, import_id: int) -> HistoryImport | None:
        return _import_or_none(await self._call("import_by_id", import_id))

    async def at_work(self) -> tuple[HistoryImport, ...]:
        """Those that are being read or removed."""
        rows = await self._rpc.call("list_imports", {"p_at_work": True}, None)
        return tuple(map(_import, rows))

    async def every(self) -> tuple[HistoryImport, ...]:
        """The one that changed last comes first."""
        rows = await self._rpc.call("list_imports", {"p_at_work": False}, None)
        return tuple(map(_import, rows))

    async def store_page(
        self, import_id: int, *, phase: Phase, at: str, page: Page, thread_id: str = ""
    ) -> HistoryImport | None:
        """Stores a page where the import still runs and stands `at` that place in `phase`; else
        nothing happens. Returns the import as it is then, None if it is gone."""
        row = await self._call(
            "store_import_page",
            import_id,
            p_phase=phase,
            p_at=at,
            p_page=as_json(asdict(page)),
            p_thread_id=thread_id,
        )
        return _import_or_none(row)

    async def next_thread(self, import_id: int) -> tuple[str, str] | None:
        """A thread that is still to be read, and its position. None: there is none; the import is
        in its last phase then, or does not run any more."""
        row = await self._call("next_import_thread", import_id)
        return (row["thread_id"], row["position"]) if row else None

    async def finish(
        self, import_id: int, members: Mapping[str, Sequence[str]]
    ) -> HistoryImport | None:
        """Everything is read. `members`: open_id → all names known of each present member."""
        names_by_person = {open_id: list(names) for open_id, names in members.items()}
        row = await self._call("finish_import", import_id, p_members=as_json(names_by_person))
        return _import_or_none(row)

    async def fail(self, import_id: int, error: str) -> HistoryImport | None:
        """It cannot go on. `error` is a kind, nobody's words."""
        return _import_or_none(await self._call("fail_import", import_id, p_error=error))

    async def remove_some(self, import_id: int) -> tuple[int, HistoryImport | None]:
        """One step of removing: how many messages went, and the import; None: it is gone."""
        row = await self._call("remove_import_messages", import_id, p_most=_REMOVED_AT_ONCE)
        return row["removed"], _import_or_none(row["import"])

    async def _set_state(
        self, chat: Chat, context: AgentMemoryContext | None, state: State
    ) -> HistoryImport | None:
        params = {**_of(chat), "p_state": state}
        return _import_or_none(await self._rpc.call("set_import_state", params, context))

    async def _call(self, function: str, import_id: int, **params: object) -> Any:
        return await self._rpc.call(function, {"p_import_id": import_id, **params}, None)


def _of(chat: Chat) -> dict[str, object]:
    tenant_key, chat_id = chat
    return {"p_chat_id": chat_id, "p_tenant_key": tenant_key}


def _import(row: Mapping[str, Any]) -> HistoryImport:
    return HistoryImport(**row)


def _import_or_none(row: Mapping[str, Any] | None) -> HistoryImport | None:
    return _import(row) if row else None
