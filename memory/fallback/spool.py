"""The spool: turns kept in the queue's database while the memory is away. One SQL function each.

The queue's database may be the memory's own or another server. When it is away too, nothing runs:
jobs stay queued, and what was under way fails with `SpoolUnavailable` and is tried again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from memory.backends.pool import Pool
from memory.errors import AccessDenied, SpoolUnavailable
from memory.fallback.writes import LateWrite
from memory.migrations import SCHEMA
from memory.models import StoredCard, TurnState
from memory.origins import MESSAGE, Origin
from memory.outcomes import ANSWERED, TurnOutcome
from memory.scope import AgentMemoryContext, context_of_row

_BATCH = 50
_CANCEL_GRACE_S = 0.25


@dataclass(frozen=True, slots=True)
class SpooledTurn:
    """A turn as far as it is known. Times are ISO 8601; `version` counts the changes of the row.

    `oldest_s`: when the turn was opened, the spool had not been empty for that long (s).
    """

    turn_id: str
    context: AgentMemoryContext
    content: str
    actor_name: str = ""
    origin: Origin = MESSAGE
    state: TurnState = "open"
    attempts: int = 1
    cards: tuple[StoredCard, ...] = ()
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    given: tuple[str, ...] = ()
    error: str | None = None
    asked_at: str | None = None
    answered_at: str | None = None
    version: int = 0
    oldest_s: float = 0.0
    means: TurnOutcome = ANSWERED


@dataclass(frozen=True, slots=True)
class SpoolState:
    """How many turns wait, how many `recalls` and other `writes` (`memory.fallback.writes`), and
    how many of all the memory refused.

    The oldest of what waits is there `since` (ISO 8601) and `oldest_s` seconds old.
    `conversations` are (conversation_id, user_id), the one that waited longest first.
    """

    waiting: int
    refused: int
    since: str | None
    conversations: tuple[tuple[str, str], ...]
    recalls: int = 0
    writes: int = 0
    oldest_s: float = 0.0


class Spool:
    """The rows of `feishu_bot.spool`. Methods on one turn return None when it is not there.

    All methods raise `SpoolUnavailable`.
    """

    def __init__(self, pool: Pool, *, timeout_s: float = 5.0) -> None:
        self._pool = pool
        self._timeout_s = timeout_s

    async def open_turn(self, turn: SpooledTurn) -> SpooledTurn:
        """Keeps `turn`, or finds it as an earlier attempt left it: a reply that is there stays.

        It is `cancelled`, and not kept, when its question was taken back while the memory is away.
        """
        row = await self._call("spool_open_turn", Jsonb(_row(turn)))
        if row is None:
            raise AccessDenied(f"turn {turn.turn_id!r} belongs to another conversation")
        return _turn(row)

    async def record_reply(
        self,
        turn_id: str,
        cards: Sequence[StoredCard],
        tool_calls: Sequence[Mapping[str, Any]],
        given: Sequence[str] = (),
        means: TurnOutcome = ANSWERED,
    ) -> SpooledTurn | None:
        """Stores the reply unless one is there; returns what is stored."""
        rows, calls = Jsonb([asdict(card) for card in cards]), Jsonb(list(tool_calls))
        sources, row = Jsonb(list(given)), means.row()
        intended = Jsonb(row) if row else None
        return _found(
            await self._call("spool_record_reply", turn_id, rows, calls, sources, intended)
        )

    async def mark_sent(
        self, turn_id: str, *, chunk: int, content: str, message_id: str
    ) -> SpooledTurn | None:
        return _found(await self._call("spool_mark_sent", turn_id, chunk, content, message_id))

    async def mark_failed(self, turn_id: str, error: str) -> SpooledTurn | None:
        return _found(await self._call("spool_mark_failed", turn_id, error))

    async def waiting(
        self, conversation_id: str, user_id: str
    ) -> tuple[int, int, tuple[SpooledTurn, ...]]:
        """How many turns and how many recalls wait in all, and the oldest turns of this
        conversation in order."""
        found = await self._call("spool_waiting", conversation_id, user_id, _BATCH)
        return found["waiting"], found["recalls"], tuple(map(_turn, found["turns"]))

    async def state(self) -> SpoolState:
        found = await self._call("spool_state", _BATCH)
        return SpoolState(
            waiting=found["waiting"],
            refused=found["refused"],
            since=found["since"],
            conversations=tuple((pair[0], pair[1]) for pair in found["conversations"]),
            recalls=found["recalls"],
            writes=found["writes"],
            oldest_s=found["oldest_s"] or 0.0,
        )

    async def keep_recall(self, message_id: str, chat_id: str) -> None:
        """A message was taken back: its turn and what else waits of it go, and the memory will hear
        of it first."""
        await self._call("spool_keep_recall", message_id, chat_id)

    async def keep_write(self, write: LateWrite) -> None:
        """Keeps a write, unless the message it is about was taken back."""
        await self._call("spool_keep_write", Jsonb(write.row()))

    async def writes(self, *, recalls: bool) -> tuple[LateWrite, ...]:
        """The oldest writes in order: of messages taken back, or all others."""
        return tuple(map(LateWrite.from_row, await self._call("spool_writes", recalls, _BATCH)))

    async def drop_writes(self, writes: Sequence[LateWrite]) -> None:
        """Forgets writes that the memory has."""
        await self._call("spool_drop_writes", [write.seq for write in writes])

    async def refuse_write(self, write: LateWrite, reason: str) -> None:
        """The memory refuses the write: it stays for operators. `reason`: a code, no text."""
        await self._call("spool_refuse_write", write.seq, reason)

    async def drop(self, turn: SpooledTurn) -> bool:
        """Forgets a turn that the memory has; False when it changed in the meantime."""
        dropped: bool = await self._call("spool_drop", turn.turn_id, turn.version)
        return dropped

    async def set_aside(self, turn_id: str, reason: str) -> None:
        """The memory refuses the turn: it stays for operators. `reason`: a code, no text."""
        await self._call("spool_set_aside", turn_id, reason)

    async def take_back(self) -> int:
        """Lets what was refused wait again; returns how much."""
        count: int = await self._call("spool_take_back")
        return count

    async def forget(
        self,
        *,
        user_id: str | None = None,
        tenant_key: str = "",
        conversation_id: str | None = None,
    ) -> int:
        """Forgets what waits of a person (subject or author), of a conversation, or of a person in
        a conversation; returns how many turns."""
        count: int = await self._call("spool_forget", user_id, tenant_key, conversation_id)
        return count

    async def close(self) -> None:
        await self._pool.close()

    async def _call(self, function: str, *arguments: object) -> Any:
        places = ", ".join(["%s"] * len(arguments))
        statement = f"select {SCHEMA}.{function}({places})".encode()
        try:
            # The second limit gives up a server that does not even cancel; see backends.postgres.
            async with (
                asyncio.timeout(self._timeout_s + _CANCEL_GRACE_S),
                asyncio.timeout(self._timeout_s),
                self._pool.connection() as connection,
            ):
                return await connection.ask(statement, arguments)
        except TimeoutError as exc:
            raise SpoolUnavailable(f"{function} took longer than {self._timeout_s} s") from exc
        except psycopg.Error as exc:
            code = exc.sqlstate or ""
            raise SpoolUnavailable(f"{function}: {type(exc).__name__}", code=code) from exc


def _row(turn: SpooledTurn) -> dict[str, Any]:
    scope = turn.context
    return {
        "turn_id": turn.turn_id,
        "conversation_id": scope.conversation_id,
        "chat_id": scope.chat_id,
        "root_id": scope.root_id,
        "user_id": scope.user_id,
        "actor_id": scope.actor_id,
        "actor_name": turn.actor_name,
        "tenant_key": scope.tenant_key,
        "content": turn.content,
        "origin": turn.origin.row(),
        "state": turn.state,
        "attempts": turn.attempts,
        "cards": [asdict(card) for card in turn.cards],
        "tool_calls": list(turn.tool_calls),
        "given": list(turn.given),
        "intended": turn.means.row(),
    }


def _found(row: Mapping[str, Any] | None) -> SpooledTurn | None:
    return None if row is None else _turn(row)


def _turn(row: Mapping[str, Any]) -> SpooledTurn:
    context = context_of_row(row)
    return SpooledTurn(
        turn_id=row["turn_id"],
        context=context,
        content=row["content"],
        actor_name=row["actor_name"],
        origin=Origin.from_row(row.get("origin")),
        state=row["state"],
        attempts=row["attempts"],
        cards=tuple(map(StoredCard.from_row, row["cards"])),
        tool_calls=tuple(row["tool_calls"]),
        given=tuple(row.get("given") or ()),
        error=row["error"],
        asked_at=row["asked_at"],
        answered_at=row["answered_at"],
        version=row["version"],
        oldest_s=row.get("oldest_s") or 0.0,
        means=TurnOutcome.from_row(row.get("intended")),
    )
