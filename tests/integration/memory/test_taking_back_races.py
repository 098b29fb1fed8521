"""A tool of a turn and the taking back of its message at the same moment: whoever is first."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping

import psycopg
import pytest

from lab.doubles.sentinel import tables_with
from memory.backends.postgres import PostgresRpc
from memory.errors import TakenBack
from memory.models import MESSAGE_ORIGIN, Origin
from memory.scope import AgentMemoryContext, private_context
from memory.store import MemoryStore
from memory.tables.private import PrivateStore
from tests.support.people import Group
from tests.support.postgres import waits_for_a_lock

pytestmark = pytest.mark.anyio

_Statement = tuple[str, list[str]]
_RECALL = "select public.recall_message(%s, %s)"
_MERGE = (
    "select public.merge_working_memory(p_conversation_id => %s, p_chat_id => %s, p_user_id => %s,"
    " p_actor_id => %s, p_tenant_key => %s, p_scope => 'user', p_patch => %s, p_turn_id => %s)"
)


async def _begun(rpc: PostgresRpc, group: Group) -> tuple[AgentMemoryContext, str]:
    alice, turn_id = group.turn(), group.message("said")
    await MemoryStore(rpc).begin_turn(alice, turn_id=turn_id, content="Hello")
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
        await waits_for_a_lock(connection)
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
        await waits_for_a_lock(connection)
        tool.commit()
        assert await taking_back == "cancelled"
    assert (await MemoryStore(rpc).working_memory(alice)).user == {}
    assert not connection.execute("select 1 from agent_working_memory_history").fetchone()


def _writes(group: Group) -> Mapping[str, _Statement]:
    """What a message that is heard has written, by what writes it."""
    alice, said = group.turn(), group.message("said")
    words = "the word is hunter2"
    record = {
        "message_id": said, "author": "Alice", "author_id": alice.actor_id, "content": words,
        "timestamp": 1, "is_bot": False, "ours": False,
    }  # fmt: skip
    records = json.dumps([record])
    turn = [said, alice.conversation_id, alice.chat_id, alice.root_id, alice.user_id]
    turn += [alice.actor_id, "Alice", alice.tenant_key, words]
    talk = [alice.chat_id, alice.tenant_key]
    decided = [*talk, alice.actor_id, said, "follow-up", "rules", "hunter2"]
    return {
        "open_turn": (f"select open_turn({', '.join(['%s'] * 9)}, 10)", turn),
        "begin_turn": (f"select begin_turn({', '.join(['%s'] * 9)}, 10, 0, null, null)", turn),
        "begin_conversation": ("select begin_conversation(%s, %s, 1, %s)", [*talk, records]),
        "continue_conversation": (
            "select continue_conversation(%s, %s, %s, 1, 0, 50)", [*talk, records],
        ),
        "log_decision": (
            "select log_decision(%s, %s, %s, %s, false, %s, %s, %s, null, null, null)", decided,
        ),
    }  # fmt: skip


_WRITERS = (
    "open_turn",
    "begin_turn",
    "begin_conversation",
    "continue_conversation",
    "log_decision",
)


@pytest.mark.parametrize("writer", _WRITERS)
async def test_what_is_taken_back_while_it_is_written_down_is_not_kept(
    database_url: str, connection: psycopg.Connection, rpc: PostgresRpc, writer: str
) -> None:
    group = Group()
    statement, params = _writes(group)[writer]
    with psycopg.connect(database_url) as writing:
        writing.execute(statement.encode(), params)
        back = asyncio.create_task(MemoryStore(rpc).take_back(group.message("said"), group.chat()))
        await waits_for_a_lock(connection)
        writing.commit()
        await back
    assert tables_with(connection, "hunter2") == set()


@pytest.mark.parametrize("writer", _WRITERS)
async def test_what_is_being_taken_back_is_not_written_down(
    database_url: str, connection: psycopg.Connection, writer: str
) -> None:
    group = Group()
    statement, params = _writes(group)[writer]

    def write() -> None:
        with psycopg.connect(database_url) as writing:
            writing.execute(statement.encode(), params)

    with psycopg.connect(database_url) as taking_back:
        taking_back.execute(_RECALL, [group.message("said"), group.chat()])
        writing = asyncio.create_task(asyncio.to_thread(write))
        await waits_for_a_lock(connection)
        taking_back.commit()
        await writing
    assert tables_with(connection, "hunter2") == set()


async def _noted(rpc: PostgresRpc, answer: AgentMemoryContext, source: str) -> str:
    """Opens a private turn of `answer` and notes what it draws on; returns its id."""
    origin = Origin("private_answer", f"{source}_asked")
    turn_id = origin.turn_id
    await MemoryStore(rpc).begin_turn(
        answer, turn_id=turn_id, content="What was it?", origin=origin
    )
    await PrivateStore(rpc).draw_on(answer, turn_id, [source], with_notes=False)
    return turn_id


async def _state(connection: psycopg.Connection, turn_id: str) -> str:
    row = connection.execute("select state from agent_turns where id = %s", [turn_id]).fetchone()
    assert row
    return str(row[0])


async def test_a_source_taken_back_while_the_answer_is_made_is_noticed_in_another_chat(
    connection: psycopg.Connection, rpc: PostgresRpc
) -> None:
    group = Group()
    said = group.p2p()
    await MemoryStore(rpc).begin_turn(said, turn_id=group.message("said"), content="It is 4711")
    await MemoryStore(rpc).take_back(group.message("said"), said.chat_id)
    place = private_context(said.actor_id, said.tenant_key, chat_id=said.chat_id)

    assert await _state(connection, await _noted(rpc, place, group.message("said"))) == "cancelled"


@pytest.mark.parametrize("how", ["draw_on", "note_read_messages", "keep_digest_sources"])
async def test_who_notes_a_source_waits_for_its_taking_back(
    database_url: str, connection: psycopg.Connection, rpc: PostgresRpc, how: str
) -> None:
    answer, source = await _ready(rpc, how)

    def note() -> bool:
        with psycopg.connect(database_url) as noting:
            row = noting.execute(*_NOTES[how](answer, source)).fetchone()
        return bool(row and row[0])

    with psycopg.connect(database_url) as taking_back:
        taking_back.execute(_RECALL, [source, answer.chat_id])
        noting = asyncio.create_task(asyncio.to_thread(note))
        await waits_for_a_lock(connection)
        taking_back.commit()
        assert not await noting, "it may not be told"


@pytest.mark.parametrize("how", ["draw_on", "note_read_messages", "keep_digest_sources"])
async def test_a_taking_back_waits_for_who_notes_the_source(
    database_url: str, connection: psycopg.Connection, rpc: PostgresRpc, how: str
) -> None:
    answer, source = await _ready(rpc, how)
    with psycopg.connect(database_url) as noting:
        noting.execute(*_NOTES[how](answer, source))
        taking_back = asyncio.create_task(MemoryStore(rpc).take_back(source, answer.chat_id))
        await waits_for_a_lock(connection)
        noting.commit()
        await taking_back
    assert await _state(connection, "answer") == "cancelled"


def _identity(answer: AgentMemoryContext) -> list[str]:
    return [answer.conversation_id, answer.user_id, answer.actor_id]


_NOTES: Mapping[str, Callable[[AgentMemoryContext, str], _Statement]] = {
    "draw_on": lambda answer, source: (
        "select draw_on(%s, %s, %s, %s, 'answer', %s, false)",
        [*_identity(answer), answer.tenant_key, json.dumps([source])],
    ),
    "note_read_messages": lambda answer, source: (
        "select note_read_messages(%s, %s, %s, 'answer', %s)",
        [*_identity(answer), json.dumps([source])],
    ),
    "keep_digest_sources": lambda answer, source: (
        "select keep_digest_sources('answer', %s, %s, %s)",
        [answer.chat_id, answer.tenant_key, json.dumps([{"message_id": source}])],
    ),
}


async def _ready(rpc: PostgresRpc, how: str) -> tuple[AgentMemoryContext, str]:
    """An answer in the making and its source, in the same chat."""
    group = Group()
    alone = private_context(group.person("alice"), "tenant", chat_id=group.chat("p2palice"))
    answer = alone if how == "draw_on" else group.turn()
    source = group.message("source")
    origin = Origin("private_answer", "offer") if how == "draw_on" else MESSAGE_ORIGIN
    await MemoryStore(rpc).begin_turn(
        answer, turn_id="answer", content="What was it?", origin=origin
    )

    return answer, source
