"""Breaks the circuit to a memory that is away, so that nobody waits for it.

closed ──N failures in a row──▶ open ──a probe every few seconds──▶ half open ──▶ closed or
open. Turns never probe: whoever tends the breaker does. `Patience` gives up slow calls when
nothing else is answered meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import structlog

from memory.errors import KeyRefused, NotMigrated, StoreConnectionLost, StoreError, StoreUnavailable
from memory.rpc import Call, Rpc
from memory.scope import AgentMemoryContext, memory_context

log = structlog.get_logger()
BreakerState = Literal["closed", "open", "half_open"]
_AT_ONCE_S = 0.5
_NOBODY = memory_context(chat_id="oc_probe", root="main", subject="ou_probe", actor="ou_probe")
_NOTHING = {
    "p_chat_id": None,
    "p_conversation_id": None,
    "p_user_id": None,
    "p_since": None,
    "p_limit": 0,
}

# One call as the service and one as a person: Supabase has a key for each, and turns need both.
PROBE_CALLS: tuple[Call, ...] = (
    ("list_conversations", _NOTHING, None),
    ("get_working_memory", {**_NOBODY.identity(), "p_tenant_key": _NOBODY.tenant_key}, _NOBODY),
)


class MemoryWatch:
    """Told of what happens to the memory; overridden by those who count. Does nothing itself."""

    def state(self, state: BreakerState) -> None:
        """The breaker is now in this state."""

    def count_failure(self, kind: str) -> None:
        """A call got no answer. `kind` is the class of the error."""

    def count_kept_turn(self) -> None:
        """A turn was put into the queue until the memory is back."""

    def count_written_turn(self) -> None:
        """A turn that waited was written."""

    def waiting(self, turns: int, oldest_s: float) -> None:
        """So many turns wait, as last seen, and the oldest of anything for so long (s)."""


class CircuitBreaker:
    """Opens after `failures` in a row that lie within `window_s` (s); then admits one probe each
    `probe_every_s` until one succeeds. `clock` is monotonic seconds."""

    def __init__(
        self,
        *,
        failures: int = 3,
        window_s: float = 20.0,
        probe_every_s: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._failures = failures
        self._window_s = window_s
        self._probe_every_s = probe_every_s
        self._clock = clock
        self._failed_at: list[float] = []
        self._opened_at = 0.0
        self._lost_at = float("-inf")
        self._next_probe: float | None = None  # None while closed
        self._probing = False

    @property
    def state(self) -> BreakerState:
        if self._next_probe is None:
            return "closed"
        return "half_open" if self._probing else "open"

    @property
    def suspicious(self) -> bool:
        """Closed, but the last call failed, or there has been none since it was open."""
        return self._next_probe is None and self.failed_lately > 0

    @property
    def failed_lately(self) -> int:
        """How many calls in a row have failed within the window."""
        return len(self._recent())

    @property
    def away_s(self) -> float:
        """For how long it has been open; 0 while closed."""
        return 0.0 if self._next_probe is None else self._clock() - self._opened_at

    def admit(self) -> bool:
        """Whether a call may be made now."""
        return self._next_probe is None

    def admit_probe(self) -> bool:
        """Whether a probe is due. One whose outcome never comes is followed by another one when
        the next is due."""
        now = self._clock()
        if self._next_probe is None or now < self._next_probe:
            return False
        self._next_probe = now + self._probe_every_s
        self._probing = True
        return True

    def note_success(self) -> None:
        """The memory answered, whatever it said. One that was away is given up again at once if its
        next call fails."""
        was_open = self._next_probe is not None
        self._failed_at = [self._clock()] * (self._failures - 1) if was_open else []
        self._next_probe = None
        self._probing = False

    def note_failure(self, *, connection_lost: bool = False) -> None:
        """The memory did not answer. `connection_lost`: the connection ended; that fails all calls
        under way at once, so they count as one failure."""
        now = self._clock()
        if connection_lost and self._next_probe is None and now - self._lost_at < _AT_ONCE_S:
            return
        self._lost_at = now if connection_lost else self._lost_at
        if self._next_probe is not None:
            if self._probing:  # else a call that was under way when the breaker opened
                self._next_probe = now + self._probe_every_s
            self._probing = False
            return
        self._failed_at = [*self._recent(), now]
        if len(self._failed_at) >= self._failures:
            self._opened_at = now
            self._next_probe = now + self._probe_every_s

    def _recent(self) -> list[float]:
        now = self._clock()
        return [at for at in self._failed_at if now - at < self._window_s]


class BreakingRpc:
    """An `Rpc` that fails at once while its breaker is open.

    A probe, and a call to a memory that has just failed, is given `hurried_s` (s) only; so are
    calls to one that answers nobody (`Patience`).
    """

    def __init__(
        self,
        rpc: Rpc,
        breaker: CircuitBreaker,
        *,
        hurried_s: float = 1.5,
        watch: MemoryWatch | None = None,
    ) -> None:
        self.breaker = breaker
        self._rpc = rpc
        self._hurried_s = hurried_s
        self._patience = Patience(hurried_s, lambda: breaker.failed_lately)
        self._watch = watch or MemoryWatch()

    async def call(
        self, function: str, params: Mapping[str, object], context: AgentMemoryContext | None
    ) -> Any:
        if not self.breaker.admit():
            raise StoreUnavailable(f"{function}: the memory is away, not tried")
        limit = self._hurried_s if self.breaker.suspicious else None
        return await self._try(function, partial(self._rpc.call, function, params, context), limit)

    async def probe(self, calls: Sequence[Call]) -> bool:
        """Tries `calls` in turn if it is time for that; whether the memory is there."""
        if self.breaker.admit_probe():
            self._watch.state(self.breaker.state)
            try:
                await self._try("probe", partial(self._each, calls), self._hurried_s, probing=True)
            except StoreUnavailable:
                return False
        return self.breaker.admit()

    async def close(self) -> None:
        await self._rpc.close()

    async def _each(self, calls: Sequence[Call]) -> None:
        for call in calls:
            await self._rpc.call(*call)

    async def _try(
        self,
        name: str,
        ask: Callable[[], Awaitable[Any]],
        limit_s: float | None,
        *,
        probing: bool = False,
    ) -> Any:
        try:
            async with self._patience.limit_call(limit_s):
                result = await ask()
        except StoreUnavailable as exc:
            self._note_failure(exc)
            raise
        except TimeoutError as exc:
            self._note_failure(exc)
            waited_s = limit_s or self._hurried_s
            raise StoreUnavailable(f"{name} took longer than {waited_s} s") from exc
        except StoreError:
            self._note_success(probing=probing)
            raise
        self._note_success(probing=probing)
        return result

    def _note_failure(self, exc: Exception) -> None:
        has_name = isinstance(exc, NotMigrated | KeyRefused)
        kind = type(exc if has_name else exc.__cause__ or exc).__name__
        was_closed = self.breaker.admit()
        self.breaker.note_failure(connection_lost=isinstance(exc, StoreConnectionLost))
        self._watch.count_failure(kind)
        self._watch.state(self.breaker.state)
        if was_closed and not self.breaker.admit():
            log.warning("memory.away", error=kind, **({"reason": str(exc)} if has_name else {}))

    def _note_success(self, *, probing: bool) -> None:
        self._patience.note_answer()
        if not (probing or self.breaker.admit()):
            return  # a call that was under way when the breaker opened says nothing about now
        was_away, away_s = not self.breaker.admit(), self.breaker.away_s
        self.breaker.note_success()
        if was_away:
            self._watch.state(self.breaker.state)
            log.warning("memory.back", away_s=round(away_s, 1))


@dataclass(slots=True, eq=False)
class _UnderWay:
    """A call that was made at `began` (s, of the loop)."""

    began: float
    limit: asyncio.Timeout


class Patience:
    """One slow call is waited for. When a second one has gone without an answer for `hurried_s` (s)
    and nothing else was answered meanwhile, it is the memory that is slow, and none is.

    `failed_lately` says how many calls have just failed.
    """

    def __init__(self, hurried_s: float, failed_lately: Callable[[], int]) -> None:
        self._hurried_s = hurried_s
        self._failed_lately = failed_lately
        self._under_way: set[_UnderWay] = set()
        self._answered_at = 0.0

    def note_answer(self) -> None:
        """The memory said something just now."""
        self._answered_at = asyncio.get_running_loop().time()

    @asynccontextmanager
    async def limit_call(self, limit_s: float | None) -> AsyncIterator[None]:
        """The body is one call, with `limit_s` (s) at most. Raises `TimeoutError`."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(limit_s) as limit:
            call = _UnderWay(loop.time(), limit)
            self._under_way.add(call)
            look = loop.call_later(self._hurried_s, self._look)
            try:
                yield
            finally:
                look.cancel()
                self._under_way.discard(call)

    def _look(self) -> None:
        now = asyncio.get_running_loop().time()
        long_ago = now - self._hurried_s + 0.01  # timers come a little early
        slow = [one for one in self._under_way if self._answered_at <= one.began <= long_ago]
        if len(slow) + self._failed_lately() >= 2:
            for one in slow:
                if not one.limit.expired():
                    one.limit.reschedule(now)
