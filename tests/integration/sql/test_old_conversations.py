"""Conversations that earlier versions began for quotations in p2p are found after migrating."""

from __future__ import annotations

from collections.abc import AsyncIterator

import psycopg
import pytest

from memory import migrations
from memory.scope import AgentMemoryContext, memory_context
from memory.store import MemoryStore
from tests.support.backends import PostgresBackend, memory_at
from tests.support.exchanges import exchange, texts

pytestmark = pytest.mark.anyio

FILE = "0461_quoting_in_p2p.sql"


@pytest.fixture
async def memory(database_url: str) -> AsyncIterator[MemoryStore]:
    async with memory_at(PostgresBackend(database_url, "")) as store:
        yield store


def alone(root: str, person: str = "ou_alice", chat: str = "oc_alone") -> AgentMemoryContext:
    return memory_context(
        chat_id=chat, root=root, subject=person, actor=person, tenant_key="t", chat_type="p2p"
    )


def migrate_from_before(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("alter table agent_chats drop column from_quote")
        connection.execute("delete from feishu_bot.migrations where name = %s", [FILE])
    migrations.apply(database_url)


async def history(memory: MemoryStore, context: AgentMemoryContext, limit: int = 10) -> list[str]:
    opened = await memory.open_turn(
        context, turn_id=f"om_now_{limit}_{context.root_id}", content="now", history_limit=limit
    )
    return texts(opened)


async def old_conversations(memory: MemoryStore) -> None:
    """Said in this order: in the main conversation, quoting an answer, in the main one again, and
    quoting another."""
    await exchange(memory, alone("main"), "one", "first")
    await exchange(memory, alone("om_one_oc_alone_card0"), "two", "second")
    await exchange(memory, alone("main"), "three", "third")
    await exchange(memory, alone("om_elsewhere"), "four", "fourth")


async def test_what_was_said_in_them_stands_in_the_main_conversation_in_its_order(
    memory: MemoryStore, database_url: str
) -> None:
    await old_conversations(memory)
    migrate_from_before(database_url)

    said = ["one", "first", "two", "second", "three", "third", "four", "fourth", "now"]
    assert await history(memory, alone("main")) == said
    assert await history(memory, alone("main"), limit=4) == ["four", "fourth", "now", "now"]


async def test_one_that_was_a_thread_goes_on_as_one(memory: MemoryStore, database_url: str) -> None:
    await old_conversations(memory)
    migrate_from_before(database_url)

    assert await history(memory, alone("om_elsewhere")) == ["four", "fourth", "now"]


async def test_a_fresh_start_ends_them_too(memory: MemoryStore, database_url: str) -> None:
    await old_conversations(memory)
    migrate_from_before(database_url)
    await exchange(memory, alone("main"), "/new", "done")
    await memory.start_afresh(alone("main"))

    assert await history(memory, alone("main")) == ["now"]


async def test_threads_begun_since_and_other_chats_stay_apart(
    memory: MemoryStore, database_url: str
) -> None:
    await exchange(memory, alone("om_quoted", "ou_bob", "oc_bob"), "bob", "his")
    migrate_from_before(database_url)
    await exchange(memory, alone("main"), "one", "first")
    await exchange(memory, alone("om_thread"), "two", "in a thread")

    assert await history(memory, alone("main")) == ["one", "first", "now"]
