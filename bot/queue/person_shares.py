"""How many of a person's turns a worker runs at once, so that one person does not fill it. Pure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from bot.process.asker import working_for
from bot.process.working_places import waiting
from bot.queue.person_rates import Asker


class PersonShares:
    """At most `at_once` for each person; the others wait in order. For one event loop."""

    def __init__(self, at_once: int = 8) -> None:
        self._at_once = at_once
        self._places: WeakValueDictionary[Asker, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def hold(self, asker: Asker) -> AsyncIterator[None]:
        """Holds one of the person's places while it is entered."""
        places = self._places.setdefault(asker, asyncio.Semaphore(self._at_once))
        if places.locked():
            with waiting():
                await places.acquire()
        else:
            await places.acquire()
        try:
            with working_for(asker.open_id):
                yield
        finally:
            places.release()
