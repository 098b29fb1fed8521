"""A tool of a turn and the taking back of its message at the same moment: whoever is first."""

from __future__ import annotations

import asyncio
import json

import psycopg
import pytest

from memory.backends.postgres import PostgresRpc
from memory.errors import TakenBack
from memory.scope import AgentMemoryContext
from memory.store import MemoryStore
from tests.support.people import Group
from tests.support.processes import eventually

pytestmark = pytest.mark.anyio

_RECALL = "select public.recall_message(%s, %s)"
_MERGE = (
    "select public.merge_working_memory(p_conversation_id => %s, p_chat_id => %s, p_user_id => %s,"
    " p_actor_id => %s, p_tenant_key => %s, p_scope => 'user', p_patch => %s, p_turn_id => %s)"
)


async def _waits(connection: psycopg.Connection) -> None:
    """Returns when some call waits for another's lock."""
    query = "select 1 from pg_stat_activity where wait_event_type = 'Lock'"
    await asyncio.to_thread(
        eventually, lambda: connection.execute(query).fetchone(), what="a call waits"
    )


async def _begun(rpc: PostgresRpc, group: Group) -> tuple[AgentMemoryContext, str]:
    alice, turn_id = group.turn(), group.message("said")
    await MemoryStore(rpc).open_turn(alice, turn_id=turn_id, content="Hello")
    return alice, turn_id


async def test_a_tool_waits_for_a_taking_back_and_is_then_refused(
    database_url: str, connection: psycopg.Connection, rpc: PostgresRpc
) -> None:
    alice, turn_id = await _begun(rpc, Group())
    with psycopg.connect(database_url) as taking_back:
        taking_back.execute(_RECALL, [turn_id, alice.chat_id])
        merge = asyncio.create_task(
            MemoryStore(rpc).merge_working_memory(
                alice, scope="user", patch={"city": "Hangzhou"}, turn_id=turn_id
            )
        )
        await _waits(connection)
        taking_back.commit()
        with pytest.raises(TakenBack):
            await merge
    assert not connection.execute("select 1 from agent_working_memory").fetchone()


async def test_a_taking_back_waits_for_a_tool_and_then_undoes_it(
    database_url: str, connection: psycopg.Connection, rpc: PostgresRpc
) -> None:
    alice, turn_id = await _begun(rpc, Group())
    with psycopg.connect(database_url) as tool:
        patch = json.dumps({"city": "Hangzhou"})
        identity = (alice.user_id, alice.actor_id, alice.tenant_key)
        tool.execute(_MERGE, [alice.conversation_id, alice.chat_id, *identity, patch, turn_id])
        taking_back = asyncio.create_task(MemoryStore(rpc).take_back(turn_id, alice.chat_id))
        await _waits(connection)
        tool.commit()
        assert await taking_back == "cancelled"
    assert (await MemoryStore(rpc).working_memory(alice)).user == {}
    assert not connection.execute("select 1 from agent_working_memory_history").fetchone()
