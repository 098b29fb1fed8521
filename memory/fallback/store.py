"""The memory port for a memory that can be away: turns go on, and nothing is lost.

    the memory answers ─▶ the turn is there, as in `MemoryStore`
    it does not        ─▶ the turn becomes a job of the queue before it is sent, and later steps
                          change the job; a worker writes it when the memory is back

As long as a turn has a job, the job is the truth about it. A turn begins without the memory, too,
while an earlier turn of its conversation waits: so the memory gets them in order.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import structlog

from memory.errors import StoreConnectionLost, StoreError, StoreUnavailable
from memory.fallback.breaker import PROBE_CALLS, BreakingRpc, MemoryWatch
from memory.fallback.store_jobs import (
    LateWrite,
    MissedTurn,
    Row,
    StoreJobs,
    WaitingTurns,
    late_write,
    write_job,
)
from memory.models import ANSWERED_OUTCOME, OpenTurn, StoredCard, TurnOutcome, TurnState
from memory.rpc import Json, Statement
from memory.scope import AgentMemoryContext
from memory.store import MemoryStore
from memory.tables.cards import NewButton

log = structlog.get_logger()
T = TypeVar("T")

_FOLLOWED = 2000
_QUICK_S = 1.0
_LOST_WITHIN_S = 3.0
_ROUND_S, _WAKE_EVERY_S = 1.0, 5.0
_BEHIND_S, _LOOK_AGAIN_S = 3.0, 0.2
_STILL_AWAY_EVERY_S = 30.0


@dataclass(slots=True)
class _Followed:
    """A turn under way in this worker; `waits` from when the memory did not take a step of it."""

    turn: MissedTurn
    waits: bool = False


class OutageStore(MemoryStore):
    """`MemoryStore` whose turns survive a memory that is away; see `memory.store` for the methods.

    `rpc` breaks, so that nobody waits for long. What is neither a step of a turn nor a recall
    raises `StoreUnavailable` meanwhile. Everything raises `StoreQueueAway` when the queue's
    database does not answer.
    """

    def __init__(
        self, rpc: BreakingRpc, jobs: StoreJobs, *, watch: MemoryWatch | None = None
    ) -> None:
        super().__init__(rpc)
        self._guarded = rpc
        self._breaker = rpc.breaker
        self._jobs = jobs
        self._watch = watch or MemoryWatch()
        self._followed: OrderedDict[str, _Followed] = OrderedDict()

    async def begin_turn(
        self,
        context: AgentMemoryContext,
        *,
        turn_id: str,
        content: str,
        hearing_args: Mapping[str, object] | None = None,
        decision: Mapping[str, object] | None = None,
        **more: Any,
    ) -> OpenTurn:
        """As in the memory; without it `degraded`, and what was heard is kept for later."""
        memory = partial(
            super().begin_turn,
            context,
            turn_id=turn_id,
            content=content,
            hearing_args=hearing_args,
            decision=decision,
            **more,
        )
        open_turn = await self._open_turn(_missed_turn(context, turn_id, content, more), memory)
        if open_turn.degraded and open_turn.state == "open":
            heard_late = _late("append_to_conversation", hearing_args, context)
            if writes := (*heard_late, *_late("log_decision", decision, context)):
                await self._jobs.keep_writes(context, *writes)
        return open_turn

    async def _open_turn(
        self, turn: MissedTurn, memory: Callable[[], Awaitable[OpenTurn]]
    ) -> OpenTurn:
        waiting = await self._in_turn(turn)
        if waiting.turn is None and not waiting.recalled and not waiting.behind:
            try:
                open_turn = await self._steadily(memory)
            except StoreUnavailable as exc:
                log.info("turn.without_memory", turn_id=turn.turn_id, code=exc.code)
            else:
                missed_turn = replace(
                    turn, turn_id=open_turn.turn_id or turn.turn_id, state=open_turn.state
                )
                self._follow(
                    replace(missed_turn, cards=open_turn.reply, means=open_turn.means), waits=False
                )
                return open_turn
        self._follow(turn, waits=True)
        if waiting.turn:
            return _found_turn(turn.turn_id, waiting.turn)
        state: TurnState = "cancelled" if waiting.recalled else "open"
        return OpenTurn(state, 1, degraded=True, turn_id=turn.turn_id)

    async def _in_turn(self, turn: MissedTurn) -> WaitingTurns:
        """Waits a moment for the turns before, while the memory takes them."""
        until = time.monotonic() + _BEHIND_S
        while True:
            waiting = await self._jobs.waiting(turn)
            is_next = waiting.turn is not None or not waiting.behind
            if is_next or not self._breaker.admit() or time.monotonic() > until:
                return waiting
            await asyncio.sleep(_LOOK_AGAIN_S)

    async def record_reply(
        self,
        context: AgentMemoryContext,
        *,
        turn_id: str,
        cards: Sequence[str],
        tool_calls: Sequence[Mapping[str, Any]] = (),
        buttons: Sequence[NewButton] = (),
        files: Sequence[Mapping[str, Any]] = (),
        visible_card: Mapping[str, Any] | None = None,
        source_ids: Sequence[str] = (),
        means: TurnOutcome = ANSWERED_OUTCOME,
    ) -> tuple[TurnState, tuple[StoredCard, ...]]:
        """As in the memory; a reply that waits has no buttons: a press needs the memory."""
        memory = partial(
            super().record_reply,
            context,
            turn_id=turn_id,
            cards=cards,
            tool_calls=tool_calls,
            buttons=buttons,
            files=files,
            visible_card=visible_card,
            source_ids=source_ids,
            means=means,
        )
        followed_turn = self._followed.get(turn_id)
        if followed_turn is None:
            return await self._steadily(memory)
        answered_turn = replace(
            followed_turn.turn,
            tool_calls=tuple(tool_calls),
            given=tuple(source_ids),
            shown=visible_card,
            means=means,
            answered_at=_now(),
        )
        if not followed_turn.waits:
            with contextlib.suppress(StoreUnavailable):
                state, stored_cards = await self._steadily(memory)
                self._follow(replace(answered_turn, state=state, cards=stored_cards), waits=False)
                return state, stored_cards
        pending = _pending(cards, files)
        state = "pending" if pending else "sent"
        row = await self._keep(replace(answered_turn, state=state, cards=pending), unsent=True)
        return row["state"], _cards(row)

    async def preface_reply(
        self, context: AgentMemoryContext, *, turn_id: str, note: str
    ) -> tuple[StoredCard, ...]:
        memory = partial(super().preface_reply, context, turn_id=turn_id, note=note)
        row = await self._step(context, turn_id, memory, {"note": note})
        return _cards(row) if isinstance(row, dict) else row

    async def mark_sent(
        self,
        context: AgentMemoryContext,
        *,
        turn_id: str,
        chunk: int,
        content: str,
        message_id: str,
        telling: Mapping[str, object] | None = None,
        then: Statement | None = None,
        plain: bool = False,
        was_streamed: bool = True,
    ) -> tuple[TurnState, Json]:
        """As in the memory. `then` is never run: the memory is not where it belongs."""
        delivery = {"chunk": chunk, "content": content, "message_id": message_id}
        memory = partial(
            super().mark_sent,
            context,
            turn_id=turn_id,
            chunk=chunk,
            content=content,
            message_id=message_id,
            telling=telling,
            plain=plain,
            was_streamed=was_streamed,
        )
        writes = _late("continue_conversation", telling, context)
        row = await self._step(context, turn_id, memory, {"sent": delivery}, *writes)
        return (row["state"], None) if isinstance(row, dict) else row

    async def mark_failed(self, context: AgentMemoryContext, *, turn_id: str, error: str) -> None:
        memory = partial(super().mark_failed, context, turn_id=turn_id, error=error)
        await self._step(context, turn_id, memory, {"failed": error})

    async def take_back(self, message_id: str, chat_id: str) -> TurnState | None:
        """As in the memory. Nothing that waits tells of the message any more, and a memory that is
        away hears of it when it is back."""
        state, is_told = None, True
        try:
            state = await self._steadily(partial(super().take_back, message_id, chat_id))
        except StoreUnavailable as exc:
            is_told = False
            log.info("recall.waits", message_id=message_id, code=exc.code)
        await self._jobs.take_back(message_id, chat_id, keep=not is_told)
        return state

    async def write_job(self, args: Mapping[str, Any]) -> None:
        """Writes what waited for the memory; can be repeated."""
        await write_job(self._guarded, args)
        if args.get("turn"):
            self._watch.count_written_turn()

    async def tend(self, stop: asyncio.Event) -> None:
        """Probes a memory that is away, and wakes its jobs when it is back and every few seconds
        while it is there, until `stop`."""
        wake_at, say_at = 0.0, _STILL_AWAY_EVERY_S
        while not stop.is_set():
            try:
                if not await self._guarded.probe(PROBE_CALLS):
                    wake_at = 0.0
                elif time.monotonic() > wake_at:
                    wake_at = time.monotonic() + _WAKE_EVERY_S
                    if woken_jobs := await self._jobs.wake():
                        log.info("memory.wakes_jobs", jobs=woken_jobs)
                backlog = await self._jobs.backlog()
                self._watch.waiting(backlog.turns, backlog.oldest_s)
                say_at = self._still_away(say_at, backlog.turns)
            except StoreError as exc:
                log.warning("memory.not_tended", error=type(exc).__name__, code=exc.code)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_ROUND_S):
                    await stop.wait()

    def _still_away(self, say_at: float, turns: int) -> float:
        """Says so when the memory has been away for `say_at` (s); returns when to say it next."""
        away_s = self._breaker.away_s
        if not away_s:
            return _STILL_AWAY_EVERY_S
        if away_s < say_at:
            return say_at
        log.warning("memory.still_away", away_s=round(away_s), waiting=turns)
        return say_at + _STILL_AWAY_EVERY_S

    async def _step(
        self,
        context: AgentMemoryContext,
        turn_id: str,
        memory: Callable[[], Awaitable[T]],
        change: Row,
        *writes: LateWrite,
    ) -> T | dict[str, Any]:
        """One step of a turn that was answered, where the turn is: in its job, else in the memory;
        if that is away, a job is made. Returns what the memory does, or the turn as its job has
        it."""
        followed_turn = self._followed.get(turn_id)
        change_turn = partial(self._jobs.change_turn, context, turn_id, change, *writes)
        if followed_turn and followed_turn.waits and (row := await change_turn()):
            return dict(row)
        try:
            return await self._steadily(memory)
        except StoreUnavailable:
            if followed_turn is None:
                raise
        await self._keep(followed_turn.turn, unsent=False)
        row = await change_turn()
        if row is None:  # written this very moment: the next attempt finds it in the memory
            raise StoreUnavailable(f"turn {turn_id} has just left the queue")
        return dict(row)

    async def _keep(self, turn: MissedTurn, *, unsent: bool) -> Row:
        row = await self._jobs.keep_turn(turn, unsent=unsent)
        if row["state"] != "open":
            self._watch.count_kept_turn()
            log.info("turn.waits", turn_id=turn.turn_id, state=row["state"])
        self._follow(replace(turn, state=row["state"], cards=_cards(row)), waits=True)
        return row

    async def _steadily(self, call: Callable[[], Awaitable[T]]) -> T:
        """Repeats a call that failed quickly: often the server had closed an idle connection. If
        connections keep ending, the call is made a few times."""
        began, attempt = time.monotonic(), 1
        while True:
            try:
                return await call()
            except StoreUnavailable as exc:
                is_lost = isinstance(exc, StoreConnectionLost)
                attempts, within_s = (8, _LOST_WITHIN_S) if is_lost else (2, _QUICK_S)
                is_quick = time.monotonic() - began <= within_s
                if self._breaker.state != "closed" or not is_quick or attempt >= attempts:
                    raise
            attempt += 1

    def _follow(self, turn: MissedTurn, *, waits: bool) -> None:
        self._followed.pop(turn.turn_id, None)
        self._followed[turn.turn_id] = _Followed(turn, waits)
        if len(self._followed) > _FOLLOWED:
            self._followed.popitem(last=False)


def _missed_turn(
    context: AgentMemoryContext, turn_id: str, content: str, more: Mapping[str, Any]
) -> MissedTurn:
    optional = {name: more[name] for name in ("actor_name", "origin", "quotes") if name in more}
    return MissedTurn(context, turn_id, content, _now(), **optional)


def _found_turn(turn_id: str, row: Row) -> OpenTurn:
    """A turn as an earlier attempt kept it."""
    means = TurnOutcome.from_row(row["intended"])
    return OpenTurn(
        row["state"],
        2,
        _cards(row),
        shown=row["shown"],
        degraded=True,
        turn_id=turn_id,
        means=means,
    )


def _pending(cards: Sequence[str], files: Sequence[Mapping[str, Any]]) -> tuple[StoredCard, ...]:
    contents = [
        *((text, None) for text in cards),
        *((one["content"], one["file"]) for one in files),
    ]
    return tuple(
        StoredCard(n, text, "pending", file=file) for n, (text, file) in enumerate(contents)
    )


def _cards(row: Row) -> tuple[StoredCard, ...]:
    return tuple(map(StoredCard.from_row, row["cards"]))


def _late(
    function: str, args: Mapping[str, object] | None, context: AgentMemoryContext
) -> tuple[LateWrite, ...]:
    """What belongs to the chat, as a write for later; nothing without `args`."""
    if args is None:
        return ()
    place = {"p_chat_id": context.chat_id, "p_tenant_key": context.tenant_key}
    actor = {"p_actor_id": context.actor_id} if function == "log_decision" else {}
    write = late_write(function, {**place, **actor, **args}, context)
    return (write,) if write else ()


def _now() -> str:
    return datetime.now(UTC).isoformat()
