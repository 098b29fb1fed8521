"""A circuit breaker: while the memory is away nobody waits for it.

closed ──N failures in a row──▶ open ──every few seconds, one call──▶ half open ──▶ closed or open
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

from memory.errors import StoreError, StoreUnavailable
from memory.scope import AgentMemoryContext
from memory.store import Rpc

State = Literal["closed", "open", "half_open"]


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
        self._next_probe: float | None = None  # None while closed
        self._probing = False

    @property
    def state(self) -> State:
        if self._next_probe is None:
            return "closed"
        return "half_open" if self._probing else "open"

    def admit(self) -> bool:
        """Whether a call may be made now. A probe whose outcome never comes is followed by
        another one when the next is due."""
        if self._next_probe is None:
            return True
        now = self._clock()
        if now < self._next_probe:
            return False
        self._next_probe = now + self._probe_every_s
        self._probing = True
        return True

    def succeeded(self) -> None:
        """The memory answered, whatever it said."""
        self._failed_at.clear()
        self._next_probe = None
        self._probing = False

    def failed(self) -> None:
        """The memory did not answer."""
        now = self._clock()
        if self._next_probe is not None:
            if self._probing:  # else a call that was under way when the breaker opened
                self._next_probe = now + self._probe_every_s
            self._probing = False
            return
        self._failed_at = [at for at in self._failed_at if now - at < self._window_s] + [now]
        if len(self._failed_at) >= self._failures:
            self._next_probe = now + self._probe_every_s


class BreakingRpc:
    """An `Rpc` that fails at once while its breaker is open.

    A probe is given `probe_timeout_s`, so that the turn that happens to make it loses little.
    """

    def __init__(self, rpc: Rpc, breaker: CircuitBreaker, *, probe_timeout_s: float = 1.5) -> None:
        self._rpc = rpc
        self._breaker = breaker
        self._probe_timeout_s = probe_timeout_s

    async def call(
        self, function: str, params: Mapping[str, object], context: AgentMemoryContext | None
    ) -> Any:
        if not self._breaker.admit():
            raise StoreUnavailable(f"{function}: the memory is away, not tried")
        probing = self._breaker.state == "half_open"
        try:
            async with asyncio.timeout(self._probe_timeout_s if probing else None):
                result = await self._rpc.call(function, params, context)
        except StoreUnavailable:
            self._breaker.failed()
            raise
        except TimeoutError as exc:
            self._breaker.failed()
            raise StoreUnavailable(f"{function}: no answer to a probe") from exc
        except StoreError:
            self._breaker.succeeded()
            raise
        self._breaker.succeeded()
        return result

    async def close(self) -> None:
        await self._rpc.close()
