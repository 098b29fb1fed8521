"""At most so many calls per second and key, in order; keys never wait for each other.

Source: Feishu, "Send message" (5 a second per chat, shared by all bots in it), "Update card"
(5 a second per message), "Streaming updates" (10 operations a second per card).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

# The platform counts arrivals, which the network may push closer together than departures.
_WINDOW_S = 1.05
_SWEEP_AT = 1024


def next_slot(slots: tuple[float, ...], now: float, limit: int) -> tuple[tuple[float, ...], float]:
    """The slots with the next one taken, and the seconds to wait until it.

    No window of `_WINDOW_S` seconds ever holds more than `limit` slots, bursts included.
    """
    earliest = slots[-limit] + _WINDOW_S if len(slots) >= limit else now
    slot = max(now, earliest, slots[-1] if slots else now)
    return (*slots[-(limit - 1) :], slot) if limit > 1 else (slot,), slot - now


class Pacer:
    """Waits for a key's turn. One per limit, for one event loop."""

    def __init__(
        self,
        limit: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._limit = limit
        self._clock = clock
        self._sleep = sleep
        self._slots: dict[str, tuple[float, ...]] = {}

    async def turn(self, key: str) -> None:
        """Return when a call for `key` may leave; turns are handed out in the order asked."""
        now = self._clock()
        self._forget_idle(now)
        self._slots[key], wait_s = next_slot(self._slots.get(key, ()), now, self._limit)
        if wait_s > 0:
            await self._sleep(wait_s)

    def _forget_idle(self, now: float) -> None:
        if len(self._slots) >= _SWEEP_AT:
            self._slots = {k: s for k, s in self._slots.items() if s[-1] > now - _WINDOW_S}
