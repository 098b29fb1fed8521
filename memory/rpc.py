"""How the memory's SQL functions are called, whichever transport carries the call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from memory.scope import AgentMemoryContext

Json = Any
# function, params, context: the arguments of `Rpc.call`
Call = tuple[str, Mapping[str, object], AgentMemoryContext | None]


class Rpc(Protocol):
    """Calls one SQL function. `context` is whose token is used; None is the operator."""

    async def call(
        self, function: str, params: Mapping[str, object], context: AgentMemoryContext | None
    ) -> Json:
        """The function's JSON result. Raises `StoreError`."""

    async def close(self) -> None:
        """Ends the connections."""


async def call_as(rpc: Rpc, function: str, context: AgentMemoryContext, **params: object) -> Json:
    """Calls a function of a person's thread: `context` is the token and the first arguments."""
    return await rpc.call(function, {**context.identity(), **params}, context)
