"""A live proof that the database keeps people apart, through whatever transport is configured.

A made-up person says something to the bot in private. Then others ask for it, and that person in a
group: whatever it brings to light is a leak. The rows are deleted again, whatever happens.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from memory.errors import AccessDenied, ProbeFailed
from memory.kept.operations import Operations
from memory.models import Scope
from memory.rpc import Rpc
from memory.scope import AgentMemoryContext, ChatType, memory_context
from memory.store import MemoryStore

_SCOPES: tuple[Scope, ...] = ("chat", "user")


async def probe_isolation(rpc: Rpc) -> list[str]:
    """What could be read or written where it may not be; empty: nothing.

    Raises `ProbeFailed`, or `StoreUnavailable`.
    """
    mark = uuid.uuid4().hex[:12]
    owner = _speaker("owner", mark, chat=mark, chat_type="p2p")
    readers = {
        "a stranger in another group": _speaker("stranger", mark, chat=f"{mark}_group"),
        "a stranger in p2p": _speaker("stranger", mark, chat=f"{mark}_p2p", chat_type="p2p"),
        "the person in a group": _speaker("owner", mark, chat=f"{mark}_group"),
    }
    try:
        await MemoryStore(rpc).open_turn(owner, turn_id=f"om_probe_{mark}", content=mark)
        for scope in _SCOPES:
            await MemoryStore(rpc).merge_working_memory(owner, scope=scope, patch={"probe": mark})
        if len(await _seen(rpc, owner, owner, mark)) < len(_reads(owner, owner, mark)):
            raise ProbeFailed("the probe's own token does not read the probe's rows")
        leaks = []
        for name, reader in readers.items():
            seen = await _seen(rpc, reader, owner, mark)
            leaks += [f"{function} gives {name} what was said in private" for function in seen]
            leaks += await _writes(rpc, reader, owner, name)
        return leaks
    finally:
        for name in ("owner", "stranger"):
            await Operations(rpc).forget_person(f"ou_probe_{name}_{mark}")


def _speaker(
    name: str, mark: str, *, chat: str, chat_type: ChatType = "group"
) -> AgentMemoryContext:
    person = f"ou_probe_{name}_{mark}"
    return memory_context(
        chat_id=f"oc_probe_{chat}",
        root="main",
        subject=person,
        actor=person,
        tenant_key="probe",
        chat_type=chat_type,
    )


def _reads(
    reader: AgentMemoryContext, owner: AgentMemoryContext, mark: str
) -> dict[str, Mapping[str, object]]:
    """Calls for the owner's rows: one that names the owner, one that names only the place."""
    place = {"p_tenant_key": owner.tenant_key}
    return {
        "get_working_memory": owner.identity() | place,
        "said_message": reader.identity()
        | place
        | {"p_chat_id": owner.chat_id, "p_message_id": f"om_probe_{mark}"},
    }


async def _seen(
    rpc: Rpc, reader: AgentMemoryContext, owner: AgentMemoryContext, mark: str
) -> list[str]:
    """The calls that give the owner's rows to the reader's token."""
    calls = _reads(reader, owner, mark)
    return [f for f, params in calls.items() if mark in str(await _asked(rpc, f, params, reader))]


async def _writes(
    rpc: Rpc, writer: AgentMemoryContext, owner: AgentMemoryContext, name: str
) -> list[str]:
    params = {
        **owner.identity(),
        "p_chat_id": owner.chat_id,
        "p_tenant_key": owner.tenant_key,
        "p_scope": "chat",
        "p_patch": '{"probe": "overwritten"}',
    }
    written = await _asked(rpc, "merge_working_memory", params, writer)
    return [f"merge_working_memory lets {name} change them"] if written else []


async def _asked(
    rpc: Rpc, function: str, params: Mapping[str, object], context: AgentMemoryContext
) -> Any:
    """The answer; None where the database says no."""
    try:
        return await rpc.call(function, params, context)
    except AccessDenied:
        return None
