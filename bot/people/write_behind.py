"""Writes what the bot meets, names and chats: in batches, behind the turns, never in their way."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Generic, TypeVar

import structlog

from bot.process.concurrency import cancel_tasks
from memory.errors import StoreError, StoreUnavailable
from memory.tables.directory import ChatStore, PeopleStore, SeenChat, Sighting

log = structlog.get_logger()

_GATHER_S = 1.0
_RETRY_FIRST_S = 15.0
_RETRY_LAST_S = 600.0
_BATCH = 200
_WAITING = 20_000
_LAST_WRITE_S = 2.0
_NAME_CHARACTERS = 200

T = TypeVar("T")
Key = tuple[str, str]


class Keeper(Generic[T]):
    """What was met and is not yet in the table, by tenant and id.

    `write` stores a batch and returns how many are new there; `on_new` is told when any were.
    `what` names it in the log.
    """

    def __init__(
        self,
        write: Callable[[list[T]], Awaitable[int]],
        *,
        what: str,
        on_new: Callable[[], None] = lambda: None,
        gather_s: float = _GATHER_S,
        retry_first_s: float = _RETRY_FIRST_S,
    ) -> None:
        self._store = write
        self._what = what
        self._on_new = on_new
        self._gather_s = gather_s
        self._retry_first_s = retry_first_s
        self._waiting: dict[Key, T] = {}
        self._writing: asyncio.Task[None] | None = None

    def later(self, key: Key, value: T) -> None:
        """Remembers to write a value; the last one of a key counts."""
        if len(self._waiting) >= _WAITING and key not in self._waiting:
            return  # the memory is away for long; they are met again
        self._waiting[key] = value
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())

    def drop(self, tenant_key: str, id: str) -> None:
        """What waits of somebody is not written."""
        self._waiting.pop((tenant_key, id), None)

    async def close(self) -> None:
        """Writes what waits, if that is possible at once."""
        if self._writing is not None:
            await cancel_tasks([self._writing])
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
                log.warning(
                    "keeping.postponed",
                    what=self._what,
                    waiting=len(self._waiting),
                    retry_in_s=retry_s,
                )
                await asyncio.sleep(retry_s)
                retry_s = min(retry_s * 2, _RETRY_LAST_S)
            except StoreError as exc:
                log.error(
                    "keeping.refused", what=self._what, error=type(exc).__name__, code=exc.code
                )

    async def _write_batch(self) -> None:
        """Writes the oldest that wait. If the memory is away they wait on, unless they were met
        again meanwhile."""
        batch = dict(list(self._waiting.items())[:_BATCH])
        for key in batch:
            del self._waiting[key]
        try:
            new = await self._store(list(batch.values()))
        except (StoreUnavailable, asyncio.CancelledError):
            self._waiting = batch | self._waiting
            raise
        if new:
            self._on_new()


class NameKeeper(Keeper[Sighting]):
    """Names as they were seen, for the table `people`."""

    def __init__(
        self,
        table: PeopleStore,
        *,
        on_new: Callable[[], None] = lambda: None,
        gather_s: float = _GATHER_S,
        retry_first_s: float = _RETRY_FIRST_S,
    ) -> None:
        super().__init__(
            table.remember,
            what="names",
            on_new=on_new,
            gather_s=gather_s,
            retry_first_s=retry_first_s,
        )

    def keep(self, sighting: Sighting) -> None:
        """Remembers to write a sighting; the later one of a person counts, as met if any was."""
        key = (sighting.tenant_key, sighting.open_id)
        waiting = self._waiting.get(key)
        was_met = sighting.met or (waiting is not None and waiting.met)
        self.later(key, replace(_storable(sighting), met=was_met))


class ChatKeeper(Keeper[SeenChat]):
    """Chats as messages came from them, for the table `chats`."""

    def __init__(
        self,
        table: ChatStore,
        *,
        on_new: Callable[[], None] = lambda: None,
        gather_s: float = _GATHER_S,
    ) -> None:
        super().__init__(table.remember, what="chats", on_new=on_new, gather_s=gather_s)

    def keep(self, chat: SeenChat) -> None:
        """Remembers to write where a message came from."""
        self.later((chat.tenant_key, chat.chat_id), chat)


def _storable(sighting: Sighting) -> Sighting:
    """Without what UTF-8 or Postgres cannot hold: one name must not stop the others."""
    name = sighting.name.encode("utf-8", "ignore").decode().replace("\x00", "")
    return replace(sighting, name=name[:_NAME_CHARACTERS])
