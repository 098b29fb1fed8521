"""From the spool into the memory: thread by thread, in order, each turn once.

Messages that were taken back come first, so that no turn brings one to light again; what does not
belong to a turn comes last.

Several workers may drain at once: writing a turn repeats well, each worker writes a thread in
order, and a row leaves the spool only if it is still as it was written.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict

import structlog

from memory.errors import NotMigrated, StoreError, StoreUnavailable
from memory.fallback.probe import PROBE
from memory.fallback.spool import Spool, SpooledTurn, SpoolState
from memory.fallback.writes import LateWrite
from memory.rpc import Rpc
from memory.text import as_json

log = structlog.get_logger()


class Drain:
    """Writes what waits, and knows for `lease_s` (s) after each look that the spool is empty.

    `waiting` counts the turns in the spool as last seen, `seen` is all of the last look. Methods
    raise `StoreUnavailable`.
    """

    def __init__(
        self,
        rpc: Rpc,
        spool: Spool,
        *,
        lease_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.waiting = 0
        self.seen: SpoolState | None = None
        self._rpc = rpc
        self._spool = spool
        self._lease_s = lease_s
        self._clock = clock
        self._empty_until = 0.0

    @property
    def known_empty(self) -> bool:
        """Whether nothing waits that concerns a turn that begins now."""
        return self._clock() < self._empty_until

    def filled(self) -> None:
        """This process put a turn into the spool."""
        self.waiting = max(self.waiting, 1)
        self._empty_until = 0.0

    async def everything(self) -> int:
        """Writes all that waits; returns how many turns."""
        total = 0
        while True:
            state = await self.look()
            written = sum([await self.thread(*of) for of in state.conversations])
            total += written
            if not written:
                break
        for recalls, wait in ((True, state.recalls), (False, state.writes)):
            if wait:
                await self._writes(recalls=recalls)
        return total

    async def look(self) -> SpoolState:
        """What waits."""
        asked_at = self._clock()
        state = self.seen = await self._spool.state()
        self._learn(state.waiting, state.recalls, asked_at)
        return state

    async def thread(self, conversation_id: str, user_id: str) -> int:
        """Writes what waits of one person in one thread; returns how many turns."""
        count = 0
        while True:
            asked_at = self._clock()
            waiting, recalls, turns = await self._spool.waiting(conversation_id, user_id)
            self._learn(waiting, recalls, asked_at)
            if recalls:
                await self._writes(recalls=True)
            gone = [await self._write(turn) for turn in turns]
            count += sum(gone)
            if not turns or not all(gone):  # a row that changed meanwhile is written next time
                return count

    async def _write(self, turn: SpooledTurn) -> bool:
        """Whether the turn left the spool. One that the memory refuses is set aside."""
        try:
            await self._rpc.call("restore_turn", _params(turn), turn.context)
        except StoreUnavailable:
            raise
        except StoreError as exc:
            kind = type(exc).__name__
            log.error("spool.refused", turn_id=turn.turn_id, error=kind, code=exc.code)
            await self._spool.set_aside(turn.turn_id, f"{kind} {exc.code}")
            return True
        return await self._spool.drop(turn)

    async def _writes(self, *, recalls: bool) -> None:
        while writes := await self._spool.writes(recalls=recalls):
            written = [write for write in writes if await self._write_late(write)]
            await self._spool.drop_writes(written)

    async def _write_late(self, write: LateWrite) -> bool:
        """Whether the memory has the write. One that it refuses is set aside."""
        try:
            await self._rpc.call(write.function, write.params, write.context)
        except NotMigrated as exc:
            # Another version may have kept the write, for a function that is no more.
            await self._require_memory()
            return await self._refused(write, exc)
        except StoreUnavailable:
            raise
        except StoreError as exc:
            return await self._refused(write, exc)
        return True

    async def _require_memory(self) -> None:
        """Raises `NotMigrated` when it is the memory that lacks its functions."""
        for call in PROBE:
            await self._rpc.call(*call)

    async def _refused(self, write: LateWrite, exc: StoreError) -> bool:
        kind = type(exc).__name__
        log.error("spool.refused", function=write.function, error=kind, code=exc.code)
        await self._spool.refuse_write(write, f"{kind} {exc.code}")
        return False

    def _learn(self, waiting: int, recalls: int, asked_at: float) -> None:
        self.waiting = waiting
        self._empty_until = 0.0 if waiting or recalls else asked_at + self._lease_s


def _params(turn: SpooledTurn) -> dict[str, object]:
    return {
        "p_turn_id": turn.turn_id,
        **turn.context.identity(),
        "p_chat_id": turn.context.chat_id,
        "p_root_id": turn.context.root_id,
        "p_actor_name": turn.actor_name,
        "p_tenant_key": turn.context.tenant_key,
        "p_content": turn.content,
        "p_cards": as_json([asdict(card) for card in turn.cards]),
        "p_tool_calls": as_json(list(turn.tool_calls)),
        "p_error": turn.error,
        "p_asked_at": turn.asked_at,
        "p_answered_at": turn.answered_at,
        **({"p_given": as_json(list(turn.given))} if turn.given else {}),
        **turn.origin.params(),
        **({"p_intended": as_json(row)} if (row := turn.means.row()) else {}),
    }
