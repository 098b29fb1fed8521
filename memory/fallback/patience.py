"""How long a memory is waited for that has said nothing for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass


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

    def answered(self) -> None:
        """The memory said something just now."""
        self._answered_at = asyncio.get_running_loop().time()

    @asynccontextmanager
    async def limited(self, limit_s: float | None) -> AsyncIterator[None]:
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
