"""The memory port for a memory that can be away: turns go on, and nothing is lost.

While the memory does not answer, a turn's rows go to the spool; when it is back they are written in
order, each turn once. As long as a turn has a row in the spool, that row is the truth about it.

Several workers: each may know for `lease_s` that the spool is empty, and then opens turns without
asking it. Whoever puts a turn there ends no step of it before all such leases are over, so the
turn's next attempt and the next turn of its thread find the row, in every worker. Once the spool
has not been empty for longer than that, there is nothing to wait for.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import structlog

from memory.errors import SpoolUnavailable, StoreError, StoreUnavailable
from memory.fallback.breaker import BreakingRpc
from memory.fallback.drain import Drain
from memory.fallback.probe import PROBE
from memory.fallback.spool import Spool, SpooledTurn
from memory.fallback.watch import MemoryWatch
from memory.fallback.writes import late_write
from memory.models import OpenTurn, StoredCard, TurnState
from memory.outcomes import ANSWERED, TurnOutcome
from memory.rpc import Json, Statement
from memory.scope import AgentMemoryContext
from memory.store import MemoryStore
from memory.tables.buttons import NewButton

log = structlog.get_logger()
T = TypeVar("T")

_FOLLOWED = 2000
_QUICK_S = 1.0
_SURELY = 1.5
_STILL_AWAY_EVERY_S = 30.0


@dataclass
class _Followed:
    """A turn under way here. From `settled_at` (monotonic s) on every worker finds its row."""

    turn: SpooledTurn
    spooled: bool = False
    settled_at: float = 0.0


class SpoolingStore(MemoryStore):
    """`MemoryStore` whose turns survive a memory that is away; see `memory.store` for the methods.

    `rpc` breaks, so that nobody waits for long. What is neither a step of a turn nor a recall
    raises `StoreUnavailable` meanwhile; everything raises `SpoolUnavailable` when the queue's
    database does not answer either.
    """

    def __init__(
        self,
        rpc: BreakingRpc,
        spool: Spool,
        *,
        lease_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        watch: MemoryWatch | None = None,
    ) -> None:
        super().__init__(rpc)
        self._guarded = rpc
        self._spool = spool
        self._breaker = rpc.breaker
        self._lease_s = lease_s
        self._clock = clock
        self._watch = watch or MemoryWatch()
        self._drain = Drain(rpc, spool, lease_s=lease_s, clock=clock)
        self._followed: OrderedDict[str, _Followed] = OrderedDict()

    @property
    def waiting(self) -> int:
        """How many turns wait in the spool, as last seen."""
        return self._drain.waiting

    async def close(self) -> None:
        await super().close()
        await self._spool.close()

    async def open_turn(
        self, context: AgentMemoryContext, *, turn_id: str, content: str, **more: Any
    ) -> OpenTurn:
        """As in the memory; without it `degraded`: the question is kept, the history unknown."""
        memory = partial(super().open_turn, context, turn_id=turn_id, content=content, **more)
        turn = _spooled(turn_id, context, content, more)
        return await self._opened(turn, memory)

    async def begin_turn(
        self,
        context: AgentMemoryContext,
        *,
        turn_id: str,
        content: str,
        heard: Mapping[str, object] | None = None,
        decision: Mapping[str, object] | None = None,
        **more: Any,
    ) -> OpenTurn:
        """As in the memory; without it `degraded`, and what was heard is kept for later."""
        memory = partial(
            super().begin_turn,
            context,
            turn_id=turn_id,
            content=content,
            heard=heard,
            decision=decision,
            **more,
        )
        turn = _spooled(turn_id, context, content, more)
        opened = await self._opened(turn, memory)
        if opened.degraded:
            await self._write_later("append_to_conversation", heard, context)
            await self._write_later("log_decision", decision, context)
        return opened

    async def _opened(
        self, turn: SpooledTurn, memory: Callable[[], Awaitable[OpenTurn]]
    ) -> OpenTurn:
        try:
            if not self._drain.known_empty:
                await self._drain.thread(turn.context.conversation_id, turn.context.user_id)
            opened = await self._steadily(memory)
        except SpoolUnavailable:
            raise
        except StoreUnavailable as exc:
            kept = await self._keep(_Followed(turn), "open_turn", exc)
            return OpenTurn(
                kept.state,
                kept.attempts,
                kept.cards,
                degraded=True,
                turn_id=kept.turn_id,
                means=kept.means,
            )
        turn = replace(turn, turn_id=opened.turn_id or turn.turn_id)
        self._follow(
            _Followed(replace(turn, state=opened.state, cards=opened.reply, means=opened.means))
        )
        return opened

    async def _write_later(
        self, function: str, args: Mapping[str, object] | None, context: AgentMemoryContext
    ) -> None:
        """Keeps what belongs to the chat, for when the memory is back."""
        if args is None:
            return
        place = {"p_chat_id": context.chat_id, "p_tenant_key": context.tenant_key}
        actor = {"p_actor_id": context.actor_id} if function == "log_decision" else {}
        if write := late_write(function, {**place, **actor, **args}, context):
            await self._spool.keep_write(write)

    async def record_reply(
        self,
        context: AgentMemoryContext,
        *,
        turn_id: str,
        cards: Sequence[str],
        tool_calls: Sequence[Mapping[str, Any]] = (),
        buttons: Sequence[NewButton] = (),
        files: Sequence[Mapping[str, Any]] = (),
        shown: Mapping[str, Any] | None = None,
        given: Sequence[str] = (),
        means: TurnOutcome = ANSWERED,
    ) -> tuple[TurnState, tuple[StoredCard, ...]]:
        """As in the memory; a reply that is spooled has no buttons: a press needs the memory."""
        said = [
            *((text, None) for text in cards),
            *((one["content"], one["file"]) for one in files),
        ]
        pending = tuple(
            StoredCard(n, text, "pending", file=file) for n, (text, file) in enumerate(said)
        )
        kept = await self._step(
            "record_reply",
            turn_id,
            partial(
                super().record_reply,
                context,
                turn_id=turn_id,
                cards=cards,
                tool_calls=tool_calls,
                buttons=buttons,
                files=files,
                shown=shown,
                given=given,
                means=means,
            ),
            partial(self._spool.record_reply, turn_id, pending, tool_calls, given, means),
        )
        if isinstance(kept, SpooledTurn):
            return kept.state, kept.cards
        state, stored = kept
        calls = tuple(tool_calls) if _same_texts(stored, pending) else ()
        self._changed(
            turn_id,
            lambda t: replace(
                t, state=state, cards=stored, tool_calls=calls, given=tuple(given), means=means
            ),
        )
        return state, stored

    async def preface_reply(
        self, context: AgentMemoryContext, *, turn_id: str, note: str
    ) -> tuple[StoredCard, ...]:
        """As in the memory; a turn that waits for the memory stays as it is."""
        known = self._followed.get(turn_id)
        if known and known.spooled:
            return known.turn.cards
        call = partial(super().preface_reply, context, turn_id=turn_id, note=note)
        stored = await self._steadily(call)
        self._changed(turn_id, lambda turn: replace(turn, cards=stored))
        return stored

    async def mark_sent(
        self,
        context: AgentMemoryContext,
        *,
        turn_id: str,
        chunk: int,
        content: str,
        message_id: str,
    ) -> TurnState:
        sent = {"turn_id": turn_id, "chunk": chunk, "content": content, "message_id": message_id}
        state, _ = await self.mark_sent_and_tell(context, **sent)  # type: ignore[arg-type]
        return state

    async def mark_sent_and_tell(
        self,
        context: AgentMemoryContext,
        *,
        turn_id: str,
        chunk: int,
        content: str,
        message_id: str,
        told: Mapping[str, object] | None = None,
        then: Statement | None = None,
        plain: bool = False,
        streamed: bool = True,
    ) -> tuple[TurnState, Json]:
        """As in the memory. `then` is never run: the memory is not where it belongs."""
        mark = partial(
            super().mark_sent_and_tell,
            context,
            turn_id=turn_id,
            told=told,
            plain=plain,
            streamed=streamed,
        )
        spool_mark = partial(self._spool.mark_sent, turn_id)
        kept = await self._step(
            "mark_sent",
            turn_id,
            partial(mark, chunk=chunk, content=content, message_id=message_id),
            partial(spool_mark, chunk=chunk, content=content, message_id=message_id),
        )
        if isinstance(kept, SpooledTurn):
            await self._write_later("continue_conversation", told, context)
            return kept.state, None
        state, _ = kept
        sent = StoredCard(chunk, content, "sent", message_id)
        self._changed(turn_id, lambda turn: _with_card(turn, state, sent))
        return kept

    async def mark_failed(self, context: AgentMemoryContext, *, turn_id: str, error: str) -> None:
        await self._step(
            "mark_failed",
            turn_id,
            partial(super().mark_failed, context, turn_id=turn_id, error=error),
            partial(self._spool.mark_failed, turn_id, error),
        )
        self._followed.pop(turn_id, None)

    async def take_back(self, message_id: str, chat_id: str) -> TurnState | None:
        """As in the memory; without it what waits of the message goes, and the memory hears of it
        before anything else."""
        try:
            return await self._steadily(partial(super().take_back, message_id, chat_id))
        except SpoolUnavailable:
            raise
        except StoreUnavailable as exc:
            await self._spool.keep_recall(message_id, chat_id)
            self._drain.filled()
            await asyncio.sleep(self._lease_s)  # until every worker asks the spool before a turn
            log.info("recall.spooled", message_id=message_id, code=exc.code)
            return None

    async def drain(self) -> int:
        """Writes what waits; returns how many turns. Raises `StoreUnavailable`."""
        written = await self._drain.everything()
        if written:
            self._watch.drained(written)
            log.info("spool.drained", turns=written, waiting=self.waiting)
        return written

    async def drain_forever(self, stop: asyncio.Event) -> None:
        """Drains whenever the memory is there, and probes it while it is not, until `stop`."""
        taken_back, say_at = False, _STILL_AWAY_EVERY_S
        while not stop.is_set():
            try:
                if not taken_back:
                    await self._spool.take_back()
                    taken_back = True
                if await self._guarded.probe(PROBE):
                    await self.drain()
                    say_at = _STILL_AWAY_EVERY_S
                else:
                    await self._drain.look()
                    say_at = self._still_away(say_at)
                if self._drain.seen:
                    self._watch.waits(self._drain.seen)
            except StoreError as exc:
                level = "debug" if isinstance(exc, StoreUnavailable) else "error"
                getattr(log, level)("spool.waits", error=type(exc).__name__, code=exc.code)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._lease_s / 2):
                    await stop.wait()

    def _still_away(self, say_at: float) -> float:
        """Says so when the memory has been away for `say_at` (s); returns when to say it next."""
        away_s = self._breaker.away_s
        if away_s < say_at:
            return say_at
        log.warning("memory.still_away", away_s=round(away_s), waiting=self.waiting)
        return say_at + _STILL_AWAY_EVERY_S

    async def _step(
        self,
        name: str,
        turn_id: str,
        memory: Callable[[], Awaitable[T]],
        spool: Callable[[], Awaitable[SpooledTurn | None]],
    ) -> T | SpooledTurn:
        """One step of a turn, where the turn is: in the spool if it has a row there, else in the
        memory; if that is away, a row is made."""
        known = self._followed.get(turn_id)
        if known and known.spooled and (kept := await spool()):
            return await self._settled(known, kept)
        try:
            return await self._steadily(memory)
        except StoreUnavailable as exc:
            if known is None:
                raise
            kept = await self._keep(known, name, exc)
            if kept.state == "cancelled" or (kept := await spool()):
                return await self._settled(known, kept)
            raise  # written this very moment: the next attempt finds it in the memory

    async def _keep(self, known: _Followed, step: str, reason: StoreError) -> SpooledTurn:
        """Puts the turn into the spool, at `step`; one that was taken back is cancelled instead."""
        known.turn = await self._spool.open_turn(known.turn)
        if known.turn.state == "cancelled":
            return known.turn
        self._watch.spooled()
        log.info("turn.spooled", turn_id=known.turn.turn_id, step=step, code=reason.code)
        known.spooled = True
        if known.turn.oldest_s < self._lease_s * _SURELY:
            known.settled_at = self._clock() + self._lease_s
        self._drain.filled()
        self._follow(known)
        return known.turn

    async def _settled(self, known: _Followed, kept: SpooledTurn) -> SpooledTurn:
        """Ends a step when no worker can still believe that the spool is empty."""
        known.turn = kept
        self._follow(known)
        await asyncio.sleep(known.settled_at - self._clock())
        return kept

    async def _steadily(self, call: Callable[[], Awaitable[T]]) -> T:
        """Repeats a call that failed quickly: often the server had closed an idle connection."""
        began = self._clock()
        try:
            return await call()
        except StoreUnavailable:
            if self._breaker.state != "closed" or self._clock() - began > _QUICK_S:
                raise
        return await call()

    def _follow(self, known: _Followed) -> None:
        turn_id = known.turn.turn_id
        self._followed.pop(turn_id, None)
        if known.turn.state in ("open", "pending"):
            self._followed[turn_id] = known
        if len(self._followed) > _FOLLOWED:
            self._followed.popitem(last=False)

    def _changed(self, turn_id: str, change: Callable[[SpooledTurn], SpooledTurn]) -> None:
        if known := self._followed.get(turn_id):
            known.turn = change(known.turn)
            self._follow(known)


def _spooled(
    turn_id: str, context: AgentMemoryContext, content: str, more: Mapping[str, Any]
) -> SpooledTurn:
    named = {name: more[name] for name in ("actor_name", "origin") if name in more}
    return SpooledTurn(turn_id, context, content, **named)


def _with_card(turn: SpooledTurn, state: TurnState, sent: StoredCard) -> SpooledTurn:
    cards = tuple(sent if card.chunk == sent.chunk else card for card in turn.cards)
    return replace(turn, state=state, cards=cards)


def _same_texts(stored: Sequence[StoredCard], pending: Sequence[StoredCard]) -> bool:
    return [(card.content, card.status) for card in stored] == [
        (card.content, card.status) for card in pending
    ]
