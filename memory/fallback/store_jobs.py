"""Keeps what a memory that is away has missed, as jobs of the queue.

A job holds a turn or writes beside turns; the jobs of one chat run in order.
`sql/functions/store_jobs.sql` describes the arguments."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from memory.backends.pool import Pool
from memory.errors import StoreQueueAway, StoreUnavailable
from memory.fallback.breaker import BreakingRpc
from memory.migrations import SCHEMA
from memory.models import (
    ANSWERED_OUTCOME,
    MESSAGE_ORIGIN,
    Origin,
    StoredCard,
    TurnOutcome,
    TurnState,
)
from memory.rpc import Json, Rpc
from memory.scope import AgentMemoryContext, memory_context
from memory.text import as_json

_BUSY_S, _PAUSE_S = 20.0, 0.05
_CANCEL_GRACE_S = 0.25
Row = Mapping[str, Any]

_RECORDS = frozenset({"append_to_conversation", "continue_conversation"})
_OF_RECORDS = ("p_chat_id", "p_tenant_key", "p_records", "p_at", "p_active_since", "p_keep")


class LateRpc:
    """An `Rpc` that queues what was said, and why the bot spoke, while the memory is away.

    It raises `StoreUnavailable` all the same, for the caller does not get a result.
    """

    def __init__(self, rpc: BreakingRpc, jobs: StoreJobs) -> None:
        self._rpc = rpc
        self._jobs = jobs

    async def call(
        self, function: str, params: Mapping[str, object], context: AgentMemoryContext | None
    ) -> Json:
        try:
            return await self._rpc.call(function, params, context)
        except StoreUnavailable:
            if context and (write := late_write(function, params, context)):
                await self._jobs.keep_writes(context, write)
            raise

    async def close(self) -> None:
        await self._rpc.close()


@dataclass(frozen=True, slots=True)
class MissedTurn:
    """A turn that the memory has missed, or may miss; times are ISO 8601."""

    context: AgentMemoryContext
    turn_id: str
    content: str
    asked_at: str
    actor_name: str = ""
    origin: Origin = MESSAGE_ORIGIN
    quotes: str = ""
    state: TurnState = "open"
    cards: tuple[StoredCard, ...] = ()
    tool_calls: tuple[Row, ...] = ()
    given: tuple[str, ...] = ()
    shown: Row | None = None
    means: TurnOutcome = ANSWERED_OUTCOME
    answered_at: str | None = None

    def row(self) -> dict[str, Any]:
        """The turn as its job keeps it."""
        return {
            "turn_id": self.turn_id,
            "content": self.content,
            "asked_at": self.asked_at,
            "actor_name": self.actor_name,
            "origin": self.origin.row(),
            "quotes": self.quotes,
            "state": self.state,
            "cards": [asdict(card) for card in self.cards],
            "tool_calls": list(self.tool_calls),
            "given": list(self.given),
            "shown": self.shown,
            "intended": self.means.row(),
            "answered_at": self.answered_at,
        }


@dataclass(frozen=True, slots=True)
class WaitingTurns:
    """What waits of a turn's conversation: `turn` as an earlier attempt kept it, whether others
    are before it (`behind`), and whether its question was `recalled`."""

    turn: Row | None
    behind: bool
    recalled: bool


@dataclass(frozen=True, slots=True)
class UnstoredTurns:
    """How many turns wait for the memory, and for how long (s) the oldest of anything has."""

    turns: int
    oldest_s: float


class StoreJobs:
    """The jobs of the queue over `pool`. All methods raise `StoreQueueAway`."""

    def __init__(self, pool: Pool, *, timeout_s: float = 5.0) -> None:
        self._pool = pool
        self._timeout_s = timeout_s

    async def waiting(self, turn: MissedTurn) -> WaitingTurns:
        """What a turn has to know before it asks the memory."""
        known_by = Jsonb({"turn_id": turn.turn_id, "origin": turn.origin.row()})
        scope = turn.context
        row = await self._call("waiting_turn", scope.chat_id, scope.conversation_id, known_by)
        return WaitingTurns(**row)

    async def keep_turn(self, turn: MissedTurn, *, unsent: bool) -> Row:
        """Keeps an answered turn; returns it as it is kept, which an earlier attempt may have done.

        It is `cancelled` if its question was taken back. With `unsent`, an answer made from a
        message that was taken back is not kept, and the turn stays `open`.
        """
        args = _job_args(turn.context) | {"turn": turn.row()}
        row: Row = await self._call("keep_turn", Jsonb(args), unsent)
        return row

    async def change_turn(
        self, context: AgentMemoryContext, turn_id: str, change: Row, *writes: LateWrite
    ) -> Row | None:
        """Changes a turn that waits (see the SQL function); None if it does not wait, or no more.

        While a worker writes the turn to the memory, this waits for the end of that.
        """
        more = _job_args(context, *writes)
        additions = {name: more[name] for name in ("writes", "message_ids", "people")}
        loop = asyncio.get_running_loop()
        until = loop.time() + _BUSY_S
        while loop.time() < until:
            args = (context.chat_id, turn_id, Jsonb({**change, **additions}))
            row: Row | None = await self._call("change_turn", *args)
            if row is None or not row.get("busy"):
                return row
            await asyncio.sleep(_PAUSE_S)
        raise StoreQueueAway(f"the job of turn {turn_id} did not end within {_BUSY_S} s")

    async def keep_writes(self, context: AgentMemoryContext, *writes: LateWrite) -> None:
        """Keeps writes beside turns, unless a message that they tell of was taken back."""
        await self._call("keep_writes", Jsonb(_job_args(context, *writes)))

    async def take_back(self, message_id: str, chat_id: str, *, keep: bool) -> None:
        """Removes a message from all that waits. With `keep` the memory hears of it later."""
        await self._call("take_back_waiting", message_id, chat_id, keep)

    async def wake(self) -> int:
        """Lets all jobs run now; returns how many slept."""
        woken_jobs: int = await self._call("wake_stores")
        return woken_jobs

    async def backlog(self) -> UnstoredTurns:
        row = await self._call("waiting_stores")
        return UnstoredTurns(row["turns"], row["oldest_s"] or 0.0)

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
            raise StoreQueueAway(f"{function} took longer than {self._timeout_s} s") from exc
        except psycopg.Error as exc:
            code = exc.sqlstate or ""
            raise StoreQueueAway(f"{function}: {type(exc).__name__}", code=code) from exc


async def write_job(rpc: Rpc, args: Row) -> None:
    """Writes what a job holds to the memory; can be repeated. Raises `StoreError`."""
    if recall := args.get("recall"):
        await rpc.call("recall_message", recall, None)
        return
    context = _context_of_job(args)
    if turn := args.get("turn"):
        await rpc.call("restore_turn", _restore_params(context, turn), context)
    for write in args["writes"]:
        await rpc.call(write["function"], write["params"], context)


def _job_args(context: AgentMemoryContext, *writes: LateWrite) -> dict[str, Any]:
    return {
        **asdict(context),
        "writes": [{"function": one.function, "params": dict(one.params)} for one in writes],
        "message_ids": sorted({id for one in writes for id in one.message_ids}),
        "people": sorted({id for one in writes for id in one.people}),
    }


def _context_of_job(args: Row) -> AgentMemoryContext:
    return memory_context(
        chat_id=args["chat_id"],
        root=args["root_id"],
        subject=args["user_id"],
        actor=args["actor_id"],
        tenant_key=args["tenant_key"],
        chat_type=args["chat_type"],
        actor_tenant=args["actor_tenant"],
    )


def _restore_params(context: AgentMemoryContext, turn: Row) -> dict[str, object]:
    """The arguments of `restore_turn`; JSON travels as text."""
    texts = {
        f"p_{name}": as_json(turn[name])
        for name in ("given", "origin", "shown", "intended")
        if turn[name]
    }
    return {
        "p_turn_id": turn["turn_id"],
        **context.identity(),
        "p_chat_id": context.chat_id,
        "p_root_id": context.root_id,
        "p_actor_name": turn["actor_name"],
        "p_tenant_key": context.tenant_key,
        "p_content": turn["content"],
        "p_cards": as_json(turn["cards"]),
        "p_tool_calls": as_json(turn["tool_calls"]),
        "p_error": turn.get("error"),
        "p_asked_at": turn["asked_at"],
        "p_answered_at": turn["answered_at"],
        "p_quotes": turn["quotes"] or None,
        **texts,
    }


@dataclass(frozen=True, slots=True)
class LateWrite:
    """A call of one SQL function of the memory.

    `message_ids` are the Feishu messages that it tells of, `people` the open_ids of their authors.
    """

    function: str
    params: Mapping[str, Any]
    message_ids: tuple[str, ...] = ()
    people: tuple[str, ...] = ()


def late_write(
    function: str, params: Mapping[str, object], context: AgentMemoryContext
) -> LateWrite | None:
    """The call as a late write; None for a call that is of no use later."""
    if function == "log_decision":
        about = (str(params["p_message_id"]),)
        return LateWrite(function, params, about, (context.actor_id,))
    if function == "hear_message" and "p_records" in params:
        # Without the memory the decision is made, and stored, by a call of its own.
        function = "append_to_conversation"
    if function not in _RECORDS:
        return None
    if function == "append_to_conversation":  # what was said before is told with the answer
        params = {name: params[name] for name in _OF_RECORDS}
    records = json.loads(str(params["p_records"]))
    return LateWrite(
        function,
        params,
        message_ids=tuple(str(record["message_id"]) for record in records),
        people=tuple({context.actor_id, *(str(record["author_id"]) for record in records)}),
    )
