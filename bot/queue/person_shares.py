"""How many of a person's turns a worker runs at once, so that one person does not fill it. Pure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from bot.queue.person_rates import Asker


class PersonShares:
    """At most `at_once` for each person; the others wait in order. For one event loop."""

    def __init__(self, at_once: int = 8) -> None:
        self._at_once = at_once
        self._places: WeakValueDictionary[Asker, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def hold(
        self, asker: Asker, waits: Callable[[bool], None] | None = None
    ) -> AsyncIterator[None]:
        """Holds one of the person's places while it is entered. `waits` is told when it has to be
        waited for, and when that is over."""
        places = self._places.setdefault(asker, asyncio.Semaphore(self._at_once))
        crowded = places.locked()
        if crowded and waits:
            waits(True)
        async with places:
            if crowded and waits:
                waits(False)
            yield
