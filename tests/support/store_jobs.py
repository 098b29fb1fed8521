"""A memory that can be taken away over a real database, and a worker that writes what it missed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.queue.jobs import STORE_TASK
from bot.queue.table import JobTable, taken_job
from memory.errors import StoreError, StoreUnavailable
from memory.fallback.store_jobs import StoreJobs, write_job
from memory.rpc import Rpc
from memory.scope import AgentMemoryContext
from tests.support.queue import idle_presence


@dataclass
class Memory:
    """The memory's transport, as long as it is not `away`; it never answers to `refuses`."""

    rpc: Rpc
    away: bool = False
    refuses: str = ""

    async def call(
        self, function: str, params: Mapping[str, object], context: AgentMemoryContext | None
    ) -> Any:
        if self.away or function == self.refuses:
            raise StoreUnavailable("away")
        return await self.rpc.call(function, params, context)

    async def close(self) -> None: ...


async def write_waiting(url: str, jobs: StoreJobs, table: JobTable, rpc: Rpc) -> list[str]:
    """Writes all that waits, as a worker does; returns what the memory refused, by kind."""
    refused: list[str] = []
    presence = idle_presence(url)
    await presence.begin()
    while True:
        await jobs.wake()
        taken = await table.take(presence.worker, 50)
        if not taken:
            break
        for job in taken:
            assert job.task == STORE_TASK
            try:
                await write_job(rpc, job.args)
            except StoreError as exc:
                refused.append(type(exc).__name__)
            following = taken_job(await table.end(job, presence.worker))
            taken += [following] if following else []
    await presence.end()
    return refused
