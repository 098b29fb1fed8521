"""Time limits that stand still while a request waits for its turn: they are for the model alone."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar

_limits: ContextVar[tuple[asyncio.Timeout, ...]] = ContextVar("limits", default=())


@asynccontextmanager
async def time_limit(seconds: float) -> AsyncIterator[asyncio.Timeout]:
    """As `asyncio.timeout`."""
    async with asyncio.timeout(seconds) as limit:
        outer = _limits.set((*_limits.get(), limit))
        try:
            yield limit
        finally:
            _limits.reset(outer)


def time_left() -> float:
    """Seconds until the first of the time limits around this task."""
    now = asyncio.get_running_loop().time()
    ends = (when for limit in _limits.get() if (when := limit.when()) is not None)
    return min(ends, default=math.inf) - now


@contextmanager
def standing_still() -> Iterator[None]:
    """While it is entered the time limits around it do not run, unless somebody sets them anew."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    stopped_limits = [
        (limit, when) for limit in _limits.get() if (when := limit.when()) is not None
    ]
    for limit, _ in stopped_limits:
        limit.reschedule(None)
    try:
        yield
    finally:
        for limit, when in stopped_limits:
            if limit.when() is None:
                limit.reschedule(when + loop.time() - began)
