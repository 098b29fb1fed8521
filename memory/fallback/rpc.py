"""Calls of the memory outside of turns, for a memory that can be away."""

from __future__ import annotations

from collections.abc import Mapping

from memory.errors import StoreUnavailable
from memory.fallback.breaker import BreakingRpc
from memory.fallback.spool import Spool
from memory.fallback.writes import late_write
from memory.rpc import Json
from memory.scope import AgentMemoryContext


class LateRpc:
    """An `Rpc` that keeps what happens outside of turns while the memory is away.

    It raises `StoreUnavailable` all the same, for the caller does not get a result.
    """

    def __init__(self, rpc: BreakingRpc, spool: Spool) -> None:
        self._rpc = rpc
        self._spool = spool

    async def call(
        self, function: str, params: Mapping[str, object], context: AgentMemoryContext | None
    ) -> Json:
        try:
            return await self._rpc.call(function, params, context)
        except StoreUnavailable:
            write = late_write(function, params, context) if context else None
            if write:
                await self._spool.keep_write(write)
            raise

    async def close(self) -> None:
        await self._rpc.close()
