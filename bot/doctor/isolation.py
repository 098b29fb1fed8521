"""A live proof that the database keeps people apart, through whatever transport is configured.

Two made-up people, a row of the first, and the second one's token: whatever it brings to light is
a leak. The rows are deleted again, whatever happens.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from memory.errors import AccessDenied, ProbeFailed
from memory.kept.operations import Operations
from memory.models import Scope
from memory.rpc import Rpc
from memory.scope import AgentMemoryContext, memory_context
from memory.store import MemoryStore

_SCOPES: tuple[Scope, ...] = ("chat", "user")


async def probe_isolation(rpc: Rpc) -> list[str]:
    """What one person's token could read or write of another's; empty: nothing.

    Raises `ProbeFailed`, or `StoreUnavailable`.
    """
    mark = uuid.uuid4().hex[:12]
    owner = _speaker("owner", mark, chat=mark)
    try:
        await MemoryStore(rpc).open_turn(owner, turn_id=f"om_probe_{mark}", content=mark)
        for scope in _SCOPES:
            await MemoryStore(rpc).merge_working_memory(owner, scope=scope, patch={"probe": mark})
        if not await _sees(rpc, owner, owner, mark):
            raise ProbeFailed("the probe's own token does not read the probe's row")
        stranger_here = _speaker("stranger", mark, chat=mark)
        stranger_elsewhere = _speaker("stranger", mark, chat=f"{mark}_elsewhere")
        leaks = await _sees(rpc, stranger_here, owner, mark)
        leaks += [
            f"{leak} from another chat"
            for leak in await _sees(rpc, stranger_elsewhere, owner, mark)
        ]
        return leaks + await _writes(rpc, stranger_here, owner)
    finally:
        for name in ("owner", "stranger"):
            await Operations(rpc).forget_person(f"ou_probe_{name}_{mark}")


def _speaker(name: str, mark: str, *, chat: str) -> AgentMemoryContext:
    person = f"ou_probe_{name}_{mark}"
    return memory_context(
        chat_id=f"oc_probe_{chat}", root="main", subject=person, actor=person, tenant_key="probe"
    )


async def _sees(
    rpc: Rpc, reader: AgentMemoryContext, owner: AgentMemoryContext, mark: str
) -> list[str]:
    """What calls that ask for the owner's rows give to the reader's token."""
    calls: dict[str, Mapping[str, object]] = {
        "get_working_memory": owner.identity() | {"p_tenant_key": owner.tenant_key},
        "conversation_history": {
            "p_conversation_id": owner.conversation_id,
            "p_user_id": owner.user_id,
            "p_until": 2**62,
            "p_limit": 10,
        },
    }
    found = []
    for function, params in calls.items():
        if mark in str(await _asked(rpc, function, params, reader)):
            found.append(f"{function} gives another person's rows")
    return found


async def _writes(rpc: Rpc, writer: AgentMemoryContext, owner: AgentMemoryContext) -> list[str]:
    params = {
        **owner.identity(),
        "p_chat_id": owner.chat_id,
        "p_tenant_key": owner.tenant_key,
        "p_scope": "chat",
        "p_patch": '{"probe": "overwritten"}',
    }
    written = await _asked(rpc, "merge_working_memory", params, writer)
    return ["merge_working_memory changes another person's rows"] if written else []


async def _asked(
    rpc: Rpc, function: str, params: Mapping[str, object], context: AgentMemoryContext
) -> Any:
    """The answer; None where the database says no."""
    try:
        return await rpc.call(function, params, context)
    except AccessDenied:
        return None
