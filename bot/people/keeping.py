"""Writes names into the table `people`: in batches, behind the turns, never in their way."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import structlog

from bot.ending import ended
from memory.errors import StoreError, StoreUnavailable
from memory.kept.people import PeopleStore, Sighting

log = structlog.get_logger()

_GATHER_S = 1.0
_RETRY_FIRST_S = 15.0
_RETRY_LAST_S = 600.0
_BATCH = 200
_WAITING = 20_000
_LAST_WRITE_S = 2.0
_NAME_CHARACTERS = 200


class NameKeeper:
    """What was seen and is not yet in the table; `on_new` is told when people came new."""

    def __init__(
        self,
        table: PeopleStore,
        *,
        on_new: Callable[[], None] = lambda: None,
        gather_s: float = _GATHER_S,
        retry_first_s: float = _RETRY_FIRST_S,
    ) -> None:
        self._table = table
        self._on_new = on_new
        self._gather_s = gather_s
        self._retry_first_s = retry_first_s
        self._waiting: dict[tuple[str, str], Sighting] = {}
        self._writing: asyncio.Task[None] | None = None

    def keep(self, sighting: Sighting) -> None:
        """Remembers to write a sighting; the later one of a person counts."""
        person = (sighting.tenant_key, sighting.open_id)
        if len(self._waiting) >= _WAITING and person not in self._waiting:
            return  # the memory is away for long; they are seen again
        self._waiting[person] = _storable(sighting)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())

    def drop(self, tenant_key: str, open_id: str) -> None:
        """What waits of somebody is not written."""
        self._waiting.pop((tenant_key, open_id), None)

    async def close(self) -> None:
        """Writes what waits, if that is possible at once."""
        if self._writing is not None:
            await ended([self._writing])
        with contextlib.suppress(TimeoutError, StoreError):
            async with asyncio.timeout(_LAST_WRITE_S):
                while self._waiting:
                    await self._write_batch()

    async def _write(self) -> None:
        retry_s = self._retry_first_s
        await asyncio.sleep(self._gather_s)
        while self._waiting:
            try:
                await self._write_batch()
                retry_s = self._retry_first_s
            except StoreUnavailable:
                log.warning("people.names_wait", people=len(self._waiting), retry_in_s=retry_s)
                await asyncio.sleep(retry_s)
                retry_s = min(retry_s * 2, _RETRY_LAST_S)
            except StoreError as exc:
                log.error("people.names_refused", error=type(exc).__name__, code=exc.code)

    async def _write_batch(self) -> None:
        """Writes the oldest that wait. If the memory is away they wait on, unless they were seen
        again meanwhile."""
        batch = dict(list(self._waiting.items())[:_BATCH])
        for person in batch:
            del self._waiting[person]
        try:
            new = await self._table.remember(list(batch.values()))
        except (StoreUnavailable, asyncio.CancelledError):
            self._waiting = batch | self._waiting
            raise
        if new:
            self._on_new()


def _storable(sighting: Sighting) -> Sighting:
    """Without what UTF-8 or Postgres cannot hold: one name must not stop the others."""
    name = sighting.name.encode("utf-8", "ignore").decode().replace("\x00", "")
    return Sighting(
        sighting.tenant_key, sighting.open_id, name[:_NAME_CHARACTERS], sighting.seen_ms
    )
