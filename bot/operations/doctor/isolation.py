"""A live proof of the audience rule, through whatever transport is configured.

A made-up person says something alone with the bot and something in a group; then tokens of other
places and people ask for all of it. Whatever comes to light where it must not is a leak, and what
does not where it must makes the proof worthless. The rows are deleted again, whatever happens.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from memory.errors import AccessDenied, NoteNotFound, ProbeFailed
from memory.rpc import Rpc
from memory.scope import MAIN_ROOT, AgentMemoryContext, ChatType, memory_context
from memory.store import MemoryStore
from memory.tables.notes import NoteStore
from memory.tables.operations import Operations

_PEOPLE = ("owner", "stranger")


@dataclass(frozen=True, slots=True)
class _Said:
    """What was said by the owner in one place; `word` stands in all of it."""

    word: str
    context: AgentMemoryContext
    turn_id: str
    note_id: str = ""


async def probe_isolation(rpc: Rpc) -> list[str]:
    """What somebody could read or write who must not; empty: nothing.

    Raises `ProbeFailed`, or `StoreUnavailable`.
    """
    mark = uuid.uuid4().hex[:12]
    alone = _speaker("owner", mark, chat="alone", chat_type="p2p")
    group = _speaker("owner", mark, chat="group")
    try:
        private = await _say(rpc, alone, f"private{mark}")
        public = await _say(rpc, group, f"public{mark}")
        stranger = _speaker("stranger", mark, chat="group")
        for reader, probe_text in ((alone, private), (group, public), (stranger, public)):
            if not await _seen(rpc, reader, probe_text):
                raise ProbeFailed(f"{_name(reader)} does not read what was said there")
        leaks = []
        for reader in (
            group,
            stranger,
            _speaker("owner", mark, chat="another group"),
            _speaker("stranger", mark, chat="strangers own", chat_type="p2p"),
            replace(alone, tenant_key="other"),
        ):
            leaks += await _leaks(rpc, reader, private)
        for reader in (
            _speaker("owner", mark, chat="another group"),
            _speaker("stranger", mark, chat="strangers own", chat_type="p2p"),
            replace(stranger, tenant_key="other"),
        ):
            leaks += await _leaks(rpc, reader, public)
        return leaks + await _writes(rpc, stranger, group)
    finally:
        for name in _PEOPLE:
            await Operations(rpc).forget_person(f"ou_probe_{name}_{mark}")


def _speaker(
    name: str, mark: str, *, chat: str, chat_type: ChatType = "group"
) -> AgentMemoryContext:
    person = f"ou_probe_{name}_{mark}"
    return memory_context(
        chat_id=f"oc_probe_{chat.replace(' ', '_')}_{mark}",
        root=MAIN_ROOT,
        subject=person,
        actor=person,
        tenant_key="probe",
        chat_type=chat_type,
    )


async def _say(rpc: Rpc, context: AgentMemoryContext, word: str) -> _Said:
    """A question and its answer, facts, and a note."""
    store, turn_id = MemoryStore(rpc), f"om_probe_{word}"
    await store.open_turn(context, turn_id=turn_id, content=word)
    await store.record_reply(context, turn_id=turn_id, cards=[word])
    # each under a key of its own: what is told in one place must not hide what was told in another
    await store.merge_working_memory(context, scope="chat", patch={word: word})
    await store.merge_working_memory(context, scope="user", patch={word: word})
    note = await NoteStore(rpc).create(context, title=word)
    return _Said(word, context, turn_id, note.id)


async def _leaks(rpc: Rpc, reader: AgentMemoryContext, probe_text: _Said) -> list[str]:
    alone = probe_text.context.chat_type == "p2p"
    what = "what was said alone with the bot" if alone else "what was said in a group"
    visible_tables = await _seen(rpc, reader, probe_text)
    return [f"{function} gives {_name(reader)} {what}" for function in visible_tables]


def _name(reader: AgentMemoryContext) -> str:
    person, chat = reader.actor_id.split("_")[2], " ".join(reader.chat_id.split("_")[2:-1])
    where = "alone with the bot" if reader.chat_type == "p2p" else f"in the {chat}"
    return f"the {person} {where}" + (" (another tenant)" if reader.tenant_key != "probe" else "")


async def _seen(rpc: Rpc, reader: AgentMemoryContext, probe_text: _Said) -> list[str]:
    """The functions that give `probe_text` to the reader's token."""
    tenant = {"p_tenant_key": reader.tenant_key}
    place = {**tenant, "p_chat_id": reader.chat_id}
    calls: Mapping[str, Mapping[str, object]] = {
        "get_working_memory": tenant,
        "recall": {**place, "p_query": probe_text.word, "p_scope": "everywhere", "p_k": 5},
        "said_message": {**place, "p_message_id": probe_text.turn_id},
        "get_note": {**place, "p_note_id": probe_text.note_id},
        "search_notes": {**place, "p_terms": f'["{probe_text.word}"]', "p_limit": 5},
    }
    about_the_owner = replace(reader, user_id=probe_text.context.user_id)
    tables = []
    for function, params in calls.items():
        for query_context in {reader, about_the_owner} if reader.chat_type != "p2p" else {reader}:
            answer = await _asked(
                rpc, function, {**query_context.identity(), **params}, query_context
            )
            if probe_text.word in str(answer):
                tables.append(function)
                break
    return tables


async def _writes(rpc: Rpc, writer: AgentMemoryContext, owner: AgentMemoryContext) -> list[str]:
    params = {
        **owner.identity(),
        "p_chat_id": owner.chat_id,
        "p_tenant_key": owner.tenant_key,
        "p_scope": "chat",
        "p_patch": '{"probe": "overwritten"}',
    }
    write_outcome = await _asked(rpc, "merge_working_memory", params, writer)
    return ["merge_working_memory changes another person's rows"] if write_outcome else []


async def _asked(
    rpc: Rpc, function: str, params: Mapping[str, object], context: AgentMemoryContext
) -> Any:
    """The answer; None where the database says no, or that there is no such note."""
    try:
        return await rpc.call(function, params, context)
    except (AccessDenied, NoteNotFound):
        return None
