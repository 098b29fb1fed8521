"""Calls of the memory outside of turns, for a memory that can be away."""

from __future__ import annotations

from collections.abc import Mapping

from memory.errors import StoreUnavailable
from memory.fallback.breaker import BreakingRpc
from memory.fallback.late_writes import late_write
from memory.fallback.store_jobs import StoreJobs
from memory.rpc import Json
from memory.scope import AgentMemoryContext


class LateRpc:
    """An `Rpc` that queues what was said, and why the bot spoke, while the memory is away.

    It raises `StoreUnavailable` all the same, for the caller does not get a result.
    """

    def __init__(self, rpc: BreakingRpc, jobs: StoreJobs) -> None:
        self._rpc = rpc
        self._jobs = jobs

    async def call(
        self, function: str, params: Mapping[str, object], context: AgentMemoryContext | None
    ) -> Json:
        try:
            return await self._rpc.call(function, params, context)
        except StoreUnavailable:
            if context and (write := late_write(function, params, context)):
                await self._jobs.keep_writes(context, write)
            raise

    async def close(self) -> None:
        await self._rpc.close()
