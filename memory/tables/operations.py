"""What operators do with the memory: look, forget, export, keep no longer than agreed.

Never on the message path: every call is made with the service role, for everybody's rows.
All methods raise the errors of `memory.errors`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory.models import Scope
from memory.rpc import Rpc
from memory.scope import split_conversation_id

_EXPORT_PAGE = 500
_RETENTION_BATCH = 1000
# Required by the functions of the message path, without meaning for a person's own scope.
_NO_CONVERSATION = "-"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the memory. `day` and `week` count rows that young; None: it keeps no time."""

    table: str
    rows: int
    day: int | None
    week: int | None
    bytes: int
    rls: bool
    policies: int


@dataclass(frozen=True, slots=True)
class Orphan:
    """A row that hangs on nothing, or lacks what should hang on it."""

    table: str
    id: str
    problem: str


@dataclass(frozen=True, slots=True)
class Unplaced:
    """Rows that do not say, or not truly, who may read them; those not `shown` reach nobody."""

    table: str
    problem: str
    rows: int
    shown: bool


@dataclass(frozen=True, slots=True)
class CheckedTurn:
    """What became of a turn. Without `state` it is not there; what is `gone` was taken back, of an
    answer perhaps one card."""

    origin: str | None = "message"
    state: str | None = "sent"
    question_gone: bool = False
    answer_gone: bool = False


@dataclass(frozen=True, slots=True)
class RecentTurns:
    """The last while as the tables tell it. Times are seconds; None: nothing to measure."""

    turns: Mapping[str, int]
    decisions: Mapping[str, int]
    retries: int
    p50: float | None
    p95: float | None
    unfinished: int
    oldest_unfinished_s: float | None


class Operations:
    """The operators' side of the memory, over the same transports."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc

    async def tables(self) -> tuple[Table, ...]:
        """Size, growth and protection of every table, the largest first. Counts every row."""
        return tuple(Table(**row) for row in await self._call("list_tables"))

    async def orphans(self, *, limit: int = 100) -> tuple[Orphan, ...]:
        """Rows that nothing leads to any more; reads whole tables."""
        rows = await self._call("list_orphans", p_limit=limit)
        return tuple(Orphan(**row) for row in rows)

    async def unplaced(self) -> tuple[Unplaced, ...]:
        """Rows that break the audience rule, or that it withholds; reads whole tables."""
        return tuple(Unplaced(**row) for row in await self._call("list_unplaced"))

    async def turns(self, turn_ids: Sequence[str]) -> Mapping[str, CheckedTurn]:
        """What became of turns, by id."""
        rows = await self._call("turns_checked", p_turn_ids=json.dumps(list(turn_ids)))
        return {turn_id: CheckedTurn(**row) for turn_id, row in rows.items()}

    async def recent(self, *, seconds: int) -> RecentTurns:
        """Turns and decisions of the last `seconds`."""
        return RecentTurns(**await self._call("recent_activity", p_seconds=seconds))

    async def decisions(
        self, *, chat_id: str | None = None, since: str | None = None, limit: int = 100
    ) -> tuple[Mapping[str, Any], ...]:
        """Rows of `agent_decisions`, latest first. `since` is an ISO 8601 time."""
        rows = await self._call("list_decisions", p_chat_id=chat_id, p_since=since, p_limit=limit)
        return tuple(rows)

    async def working_memory(
        self, *, user_id: str | None = None, conversation_id: str | None = None, limit: int = 100
    ) -> tuple[Mapping[str, Any], ...]:
        """Rows of `agent_working_memory`, latest first."""
        filters = {"p_user_id": user_id, "p_conversation_id": conversation_id, "p_limit": limit}
        return tuple(await self._call("list_working_memory", **filters))

    async def working_memory_changes(
        self, *, user_id: str | None = None, conversation_id: str | None = None, limit: int = 50
    ) -> tuple[Mapping[str, Any], ...]:
        """Who changed which keys, when: `was` and `became` hold the keys that differ."""
        filters = {"p_user_id": user_id, "p_conversation_id": conversation_id, "p_limit": limit}
        return tuple(await self._call("list_working_memory_changes", **filters))

    async def merge_working_memory(
        self,
        patch: Mapping[str, Any],
        *,
        user_id: str,
        conversation_id: str | None = None,
        tenant_key: str = "",
    ) -> Mapping[str, Any]:
        """Applies a merge patch (RFC 7396) to a conversation's scope, or to the person's lasting
        facts, as told alone with the bot, else where they told some last.

        Returns the whole scope. Raises `WorkingMemoryTooLarge`, and `BadArgument` for facts of
        somebody who did neither: they have no place.
        """
        content: Mapping[str, Any] = await self._call(
            "merge_working_memory",
            **_scope_of(user_id, conversation_id, tenant_key),
            p_chat_id=split_conversation_id(conversation_id)[0] if conversation_id else "",
            p_patch=json.dumps(patch, ensure_ascii=False),
        )
        return content

    async def clear_working_memory(
        self, *, user_id: str, conversation_id: str | None = None, tenant_key: str = ""
    ) -> None:
        """Empties a conversation's scope, or the person's own; the history stays."""
        scope = _scope_of(user_id, conversation_id, tenant_key)
        await self._call("clear_working_memory", **scope)

    async def count_person(self, user_id: str, tenant_key: str | None = None) -> dict[str, int]:
        """Rows per table that are of a person or by them, in one tenant or in all."""
        return dict(await self._call("count_person", p_user_id=user_id, p_tenant_key=tenant_key))

    async def export_person(
        self, user_id: str, tenant_key: str | None = None
    ) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        """Table and row of everything stored of a person, page by page."""
        for table in await self.count_person(user_id, tenant_key):
            place: str | None = None
            while True:
                page = await self._call(
                    "export_person",
                    p_user_id=user_id,
                    p_tenant_key=tenant_key,
                    p_table=table,
                    p_after=place,
                    p_limit=_EXPORT_PAGE,
                )
                for row in page["rows"]:
                    yield table, row
                place = page["next"]
                if place is None:
                    break

    async def forget_person(
        self, user_id: str, tenant_key: str | None = None, *, salt: str | None = None
    ) -> dict[str, int]:
        """Deletes every row of a person and what they wrote in the memory of others.

        Returns the rows per table. In one transaction; what the queue holds is not reached here.
        With `salt` the receipt is found again by `ReceiptStore.copy`; it names nobody.
        """
        salt_param = {"p_salt": salt} if salt else {}
        return dict(
            await self._call(
                "forget_person", p_user_id=user_id, p_tenant_key=tenant_key, **salt_param
            )
        )

    async def forget_conversation(
        self, conversation_id: str, user_id: str | None = None, *, keep_notes: bool = False
    ) -> dict[str, int]:
        """Deletes a conversation of one person, or of everybody. Returns the rows per table."""
        counts = await self._call(
            "forget_conversation",
            p_conversation_id=conversation_id,
            p_user_id=user_id,
            p_keep_notes=keep_notes,
        )
        return dict(counts)

    async def apply_retention(
        self,
        days: int,
        *,
        batch: int = _RETENTION_BATCH,
        on_batch: Callable[[Mapping[str, int]], None] = lambda _: None,
    ) -> dict[str, int]:
        """Deletes what is older than `days`, at most `batch` rows per table and transaction.

        Notes and a person's own working memory stay: they are kept on purpose. Returns the rows
        per table.
        """
        total: Counter[str] = Counter()
        while True:
            deleted_counts = await self._call("apply_retention", p_days=days, p_batch=batch)
            total.update(deleted_counts)
            on_batch(deleted_counts)
            if not any(deleted_counts.values()):
                return dict(total)

    async def _call(self, function: str, **params: object) -> Any:
        return await self._rpc.call(function, params, None)


def _scope_of(user_id: str, conversation_id: str | None, tenant_key: str) -> dict[str, object]:
    scope: Scope = "chat" if conversation_id else "user"
    return {
        "p_conversation_id": conversation_id or _NO_CONVERSATION,
        "p_user_id": user_id,
        "p_actor_id": user_id,
        "p_tenant_key": tenant_key,
        "p_scope": scope,
    }
