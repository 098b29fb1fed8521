"""How the memory's SQL functions are called, whichever transport carries the call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, TypeGuard, runtime_checkable

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


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL of the caller's own, for the owner of the connection; `%s` stands for a parameter."""

    sql: str
    params: tuple[object, ...] = ()

    def then(self, other: Statement) -> Statement:
        """Both, in one transaction; the result is this one's."""
        return Statement(f"{self.sql}; {other.sql}", (*self.params, *other.params))


@runtime_checkable
class JoiningRpc(Protocol):
    """A transport whose calls can take a statement of the caller's into their transaction."""

    async def call_and(
        self,
        function: str,
        params: Mapping[str, object],
        context: AgentMemoryContext,
        then: Statement,
    ) -> tuple[Json, Json]:
        """The results of the function and of `then`, which is not run as the person of `context`.
        Both happen or neither. Raises `StoreError`."""


def can_join(rpc: Rpc) -> TypeGuard[JoiningRpc]:
    """Whether the transport is such a one. Asked for every call, and so remembered by its type:
    `isinstance` of a protocol takes longer than a call waits for its connection."""
    return _joins(type(rpc))


@lru_cache(maxsize=64)
def _joins(kind: type) -> bool:
    return issubclass(kind, JoiningRpc)


async def call_as(rpc: Rpc, function: str, context: AgentMemoryContext, **params: object) -> Json:
    """Calls a function of a person's thread: `context` is the token and the first arguments."""
    return await rpc.call(function, {**context.identity(), **params}, context)
