"""Operators' calls on a real database, over both transports where the transport matters."""

from __future__ import annotations

from collections.abc import AsyncIterator

import psycopg
import pytest
from psycopg import sql

from bot.conversation import MessageRecord
from bot.listening.conversation_store import ChatConversations
from bot.operations.doctor.database import probe_isolation
from bot.queue.inbox import Inbox
from bot.queue.operator_actions import QueueDepth, QueueOperations
from lab.doubles.sentinel import tables_with
from memory.backends.postgres import PostgresRpc
from memory.errors import AccessDenied, BadArgument, WorkingMemoryTooLarge
from memory.rpc import Rpc
from memory.store import MemoryStore
from memory.tables.cards import Withdrawals
from memory.tables.notes import NoteStore
from memory.tables.operations import CheckedTurn, Operations
from scripts.operating import stored_rows
from tests.support.backends import Backend
from tests.support.exchanges import exchange
from tests.support.people import Group

pytestmark = pytest.mark.anyio

# What people keep on purpose, and what the queue's library keeps of its own.
KEPT_FOREVER = {"agent_notes", "agent_working_memory"}


@pytest.fixture
async def any_rpc(backend: Backend) -> AsyncIterator[Rpc]:
    async with backend.rpc() as opened:
        yield opened


@pytest.fixture
def operations(rpc: PostgresRpc) -> Operations:
    return Operations(rpc)


@pytest.fixture
def memory(rpc: PostgresRpc) -> MemoryStore:
    return MemoryStore(rpc)


@pytest.fixture
def group() -> Group:
    return Group()


async def test_every_call_works_over_either_transport(any_rpc: Rpc, group: Group) -> None:
    operations, alice = Operations(any_rpc), group.turn("alice")
    await exchange(MemoryStore(any_rpc), alice, "Tea?", "Yes.")
    await operations.merge_working_memory(
        {"tea": True},
        user_id=alice.user_id,
        conversation_id=alice.conversation_id,
        tenant_key="tenant",
    )

    [memory] = await operations.working_memory(user_id=alice.user_id)
    [change] = await operations.working_memory_changes(user_id=alice.user_id)
    exported = [row async for row in operations.export_person(alice.user_id)]
    tables = {table.table: table for table in await operations.tables()}
    recent = await operations.recent(seconds=60)

    assert memory["content"] == {"tea": True}
    assert change["became"] == {"tea": True}
    assert {row["content"] for table, row in exported if table == "agent_messages"} == {
        "Tea?",
        "Yes.",
    }
    assert tables["agent_messages"].rows >= tables["agent_messages"].day >= 2
    assert stored_rows.check_tables(tables.values()) == []
    assert recent.turns["answered"] >= 1
    assert await operations.decisions(chat_id=alice.chat_id) == ()
    assert await operations.turns(["om_never"]) == {"om_never": CheckedTurn(None, None)}
    await operations.orphans()
    assert (await operations.forget_conversation(alice.conversation_id))["agent_messages"] == 2
    assert "agent_working_memory" in await operations.forget_person(alice.user_id)
    assert set(await operations.apply_retention(3650)) >= {"agent_turns", "agent_chats"}


@pytest.mark.parametrize(
    ("function", "params"),
    [
        ("forget_person", {"p_user_id": "ou_x", "p_tenant_key": None}),
        ("count_person", {"p_user_id": "ou_x", "p_tenant_key": None}),
        ("list_working_memory", {"p_user_id": None, "p_conversation_id": None, "p_limit": 1}),
        ("apply_retention", {"p_days": 1, "p_batch": 1}),
        ("list_tables", {}),
    ],
)
async def test_no_persons_token_can_make_an_operators_call(
    any_rpc: Rpc, group: Group, function: str, params: dict[str, object]
) -> None:
    with pytest.raises(AccessDenied):
        await any_rpc.call(function, params, group.turn("alice"))


async def test_the_history_tells_who_changed_what(
    memory: MemoryStore, operations: Operations, group: Group
) -> None:
    about_john = group.turn("john", sender="alice")
    await memory.merge_working_memory(group.turn("john"), scope="chat", patch={"a": 1, "b": 2})
    await memory.merge_working_memory(about_john, scope="chat", patch={"a": "one", "b": None})
    await memory.merge_working_memory(about_john, scope="chat", patch={"a": "one"})
    await operations.clear_working_memory(
        user_id=about_john.user_id,
        conversation_id=about_john.conversation_id,
        tenant_key="tenant",
    )

    changes = await operations.working_memory_changes(user_id=about_john.user_id)

    assert [(row["actor_id"], row["was"], row["became"]) for row in reversed(changes)] == [
        (group.person("john"), {}, {"a": 1, "b": 2}),
        (group.person("alice"), {}, {"a": "one"}),
        ("service", {"a": 1, "b": 2}, {}),
        ("service", {"a": "one"}, {}),
    ]


async def test_the_history_of_a_memory_keeps_its_last_fifty_changes(
    memory: MemoryStore, operations: Operations, group: Group
) -> None:
    for scope, writes in (("chat", 60), ("user", 2)):
        for number in range(writes):
            await memory.merge_working_memory(group.turn(), scope=scope, patch={"n": number})  # type: ignore[arg-type]

    changes = await operations.working_memory_changes(user_id=group.person("alice"), limit=200)

    assert len([row for row in changes if row["scope"] == "user"]) == 2
    kept = [row["became"]["n"] for row in changes if row["scope"] == "chat"]
    assert kept == list(range(59, 9, -1))


async def test_operators_writes_have_the_limit_of_all_writes(operations: Operations) -> None:
    with pytest.raises(WorkingMemoryTooLarge):
        await operations.merge_working_memory(
            {"a": "x" * 20_000}, user_id="ou_x", conversation_id="feishu:oc_x:main"
        )


async def test_facts_of_somebody_who_told_none_have_no_place(operations: Operations) -> None:
    with pytest.raises(BadArgument, match="name a conversation"):
        await operations.merge_working_memory({"a": 1}, user_id="ou_x")


async def test_an_export_gives_every_row_of_a_person_page_by_page(
    connection: psycopg.Connection, memory: MemoryStore, operations: Operations, group: Group
) -> None:
    await exchange(memory, group.turn("alice"), "First", "Answer")
    await exchange(memory, group.turn("bob"), "Not hers", "Not hers")
    connection.execute(
        "insert into public.agent_decisions"
        " (message_id, chat_id, actor_id, respond, reason, tier)"
        " select 'om_' || n, 'oc', %s, false, 'no_trigger', 'none' from generate_series(1, 1203) n",
        [group.person("alice")],
    )

    rows = [row async for row in operations.export_person(group.person("alice"))]

    tables = [table for table, _ in rows]
    assert tables.count("agent_decisions") == 1203
    assert len({row["message_id"] for table, row in rows if table == "agent_decisions"}) == 1203
    assert tables.count("agent_messages") == 2
    assert "Not hers" not in str(rows)


async def test_an_export_gives_what_a_person_changed_in_anothers_memory_but_not_what_was_there(
    memory: MemoryStore, operations: Operations, group: Group
) -> None:
    await memory.merge_working_memory(group.turn("john"), scope="chat", patch={"a": "john's"})
    by_alice = group.turn("john", sender="alice")
    await memory.merge_working_memory(by_alice, scope="chat", patch={"a": "alice's"})

    rows = [row async for row in operations.export_person(group.person("alice"))]

    assert "alice's" in str(rows)
    assert "john's" not in str(rows)


async def test_retention_deletes_what_is_old_in_small_batches_and_nothing_else(
    connection: psycopg.Connection, memory: MemoryStore, operations: Operations,
    rpc: PostgresRpc, group: Group,
) -> None:  # fmt: skip
    old = group.turn("alice", thread="old")
    await ChatConversations(rpc, old).begin(old.chat_id, 1, [])
    for number in range(25):
        await exchange(memory, old, f"Old {number}", "Answer")
        said = MessageRecord("Alice", old.actor_id, "Old", number, False, f"om_{number}")
        await ChatConversations(rpc, old).append(old.chat_id, said, active_since=0, keep=100)
    await NoteStore(rpc).create(old, title="Kept")
    await memory.merge_working_memory(old, scope="user", patch={"kept": True})
    _make_older(connection, "40 days")
    fresh = group.turn("alice", thread="fresh")
    await exchange(memory, fresh, "Fresh", "Answer")
    batches: list[int] = []

    gone = await operations.apply_retention(
        30, batch=10, on_batch=lambda counts: batches.append(max(counts.values()))
    )

    assert gone["agent_turns"] == 25
    assert gone["agent_chats"] == 1
    assert gone["chat_transcript"] == 25
    assert max(batches) == 10
    assert batches[-1] == 0
    assert [c.conversation_id for c in await memory.list_conversations()] == [fresh.conversation_id]
    assert _tables_older_than(connection, "30 days") <= KEPT_FOREVER
    assert [note.title for note in await NoteStore(rpc).list(fresh)] == ["Kept"]
    assert (await memory.working_memory(fresh)).user == {"kept": True}


async def test_a_title_goes_with_the_message_it_was_made_from(
    memory: MemoryStore, operations: Operations, connection: psycopg.Connection, group: Group
) -> None:
    await exchange(memory, group.turn(), "The beginning", "Answer")
    await exchange(memory, group.turn(), "The rest", "Answer")
    connection.execute(
        "update public.agent_turns set created_at = now() - interval '2 days' where id like %s",
        ["om_The beginning%"],
    )

    await operations.apply_retention(1)

    [conversation] = await memory.list_conversations()
    assert conversation.title == ""
    assert conversation.messages == 2


async def test_orphans_are_found(
    connection: psycopg.Connection, memory: MemoryStore, operations: Operations, group: Group
) -> None:
    await exchange(memory, group.turn(), "Question", "Answer")
    assert await operations.orphans() == ()
    connection.execute("set session_replication_role = replica")  # no foreign keys, no triggers
    connection.execute("delete from public.agent_turns")

    found = await operations.orphans()

    assert [(o.table, o.problem) for o in found] == [
        ("agent_messages", "its turn is missing"),
        ("agent_messages", "its turn is missing"),
    ]


async def test_a_sent_turn_without_its_answer_is_an_orphan_unless_its_words_were_forgotten(
    connection: psycopg.Connection, rpc: PostgresRpc, memory: MemoryStore, group: Group
) -> None:
    turn, operations = group.turn(), Operations(rpc)
    await exchange(memory, turn, "Memory", "A list")
    connection.execute("update public.agent_turns set forgets = true")
    assert await Withdrawals(rpc).forget_turns() == 1
    assert await operations.orphans() == ()
    await exchange(memory, turn, "Question", "Answer")
    connection.execute("delete from public.agent_messages where role = 'assistant'")

    [found] = await operations.orphans()

    assert (found.table, found.problem) == ("agent_turns", "it is sent but has no answer stored")


async def test_the_probe_finds_nothing_where_policies_hold_and_leaves_nothing(
    any_rpc: Rpc, backend: Backend
) -> None:
    forgotten = "select (select count(*) from agent_receipts), count(*) from forgotten_people"
    with psycopg.connect(backend.database_url, autocommit=True) as connection:
        before = connection.execute(forgotten).fetchone()
        assert await probe_isolation(any_rpc) == []

        assert tables_with(connection, "ou_probe_") == set()
        assert connection.execute(forgotten).fetchone() == before


async def test_the_probe_finds_a_memory_whose_policies_are_off(
    connection: psycopg.Connection, rpc: PostgresRpc
) -> None:
    for table in ("agent_messages", "agent_working_memory"):
        connection.execute(
            sql.SQL("alter table {} disable row level security").format(
                sql.Identifier("public", table)
            )
        )

    leaks = await probe_isolation(rpc)

    alone, in_a_group = "what was said alone with the bot", "what was said in a group"
    assert f"get_working_memory gives the owner in the group {alone}" in leaks
    assert f"get_working_memory gives the stranger in the group {alone}" in leaks
    assert f"get_working_memory gives the owner in the another group {in_a_group}" in leaks


async def test_the_probe_finds_tokens_that_speak_for_whom_they_like(
    connection: psycopg.Connection, rpc: PostgresRpc
) -> None:
    for table in ("agent_working_memory", "agent_working_memory_history"):
        connection.execute(f"alter table public.{table} disable row level security".encode())
    connection.execute(
        "create or replace function bot_private.require_identity("
        "p_user_id text, p_actor_id text, p_conversation_id text) returns boolean"
        " language sql as 'select true'"
    )

    leaks = await probe_isolation(rpc)

    assert any(leak.startswith("get_working_memory gives the owner in the") for leak in leaks)
    assert "merge_working_memory changes another person's rows" in leaks


async def test_the_depth_of_the_queue(database_url: str, connection: psycopg.Connection) -> None:
    queue = QueueOperations(database_url)
    assert queue.depth() == QueueDepth(0, 0, 0, None)
    inbox = Inbox(database_url)
    for number in range(3):
        inbox.enqueue(f"message:om_{number}", {}, lock=f"lock {number}", received_ms=0)
    inbox.close()
    connection.execute("set search_path = feishu_bot")
    connection.execute("update jobs set status = 'failed' where id = (select min(id) from jobs)")

    depth = queue.depth()

    assert (depth.waiting, depth.running, depth.failed) == (2, 0, 1)
    assert depth.oldest_waiting_s is not None
    assert 0 <= depth.oldest_waiting_s < 60


def _make_older(connection: psycopg.Connection, age: str) -> None:
    """Every time in the memory is `age` earlier."""
    for table, column, kind in _times(connection):
        shift = (
            "{c} - extract(epoch from %s::interval)::bigint * 1000"
            if kind == "bigint"
            else "{c} - %s::interval"
        )
        statement = sql.SQL("update {t} set {c} = " + shift).format(
            t=sql.Identifier("public", table), c=sql.Identifier(column)
        )
        connection.execute("set session_replication_role = replica")
        connection.execute(statement, [age])
        connection.execute("set session_replication_role = origin")


def _tables_older_than(connection: psycopg.Connection, age: str) -> set[str]:
    found = set()
    for table, column, kind in _times(connection):
        if kind == "bigint":
            continue
        query = sql.SQL("select 1 from {} where {} < now() - %s::interval limit 1").format(
            sql.Identifier("public", table), sql.Identifier(column)
        )
        if connection.execute(query, [age]).fetchone():
            found.add(table)
    return found


def _times(connection: psycopg.Connection) -> list[tuple[str, str, str]]:
    return connection.execute(
        "select table_name, column_name, data_type from information_schema.columns"
        " join information_schema.tables using (table_schema, table_name)"
        " where table_schema = 'public' and table_type = 'BASE TABLE'"
        " and (data_type = 'timestamp with time zone' or column_name = 'timestamp')"
    ).fetchall()
