"""What operators can list, over every backend."""

from __future__ import annotations

import pytest

from memory.store import MemoryStore
from tests.support.exchanges import exchange
from tests.support.people import Group

pytestmark = pytest.mark.anyio


async def test_operators_find_conversations_by_chat_thread_person_and_time(
    memory: MemoryStore, group: Group
) -> None:
    here, there = group.turn("alice", thread="t1"), group.turn("bob", chat="there", thread="t2")
    await exchange(memory, here, "Q1", "A1", "A2")
    await memory.begin_turn(there, turn_id=group.message("q2"), content="a question " * 20)
    await memory.record_reply(there, turn_id=group.message("q2"), cards=["A"])

    async def found(**filters: str) -> list[str]:
        return [c.conversation_id for c in await memory.list_conversations(**filters)]

    assert await found(chat_id=group.chat("here")) == [here.conversation_id]
    assert await found(conversation_id=there.conversation_id) == [there.conversation_id]
    assert await found(user_id=group.person("alice")) == [here.conversation_id]
    assert await found(chat_id=group.chat("here"), user_id=group.person("bob")) == []
    assert await found(user_id=group.person("bob"), since="2001-01-01T00:00:00+08:00") != []
    assert await found(user_id=group.person("bob"), since="2999-01-01T00:00:00+08:00") == []

    [first] = await memory.list_conversations(chat_id=group.chat("here"))
    [second] = await memory.list_conversations(chat_id=group.chat("there"))
    assert (first.messages, first.pending, first.failed, first.title) == (3, 0, 0, "Q1")
    assert first.first_at is not None
    assert first.last_at is not None
    assert first.first_at <= first.last_at
    assert (second.messages, second.pending, len(second.title)) == (2, 1, 80)


async def test_the_latest_conversation_is_listed_first_and_the_list_is_bounded(
    memory: MemoryStore, group: Group
) -> None:
    for thread in ("t1", "t2", "t3"):
        await exchange(memory, group.turn(thread=thread), thread, "A")
    await exchange(memory, group.turn(thread="t1"), "again", "A")

    listed = await memory.list_conversations(chat_id=group.chat(), limit=2)

    assert [c.root_id for c in listed] == [group.message("t1"), group.message("t3")]


async def test_operators_see_the_messages_of_one_person_or_of_all(
    memory: MemoryStore, group: Group
) -> None:
    for name in ("alice", "bob"):
        await exchange(memory, group.turn(name), f"Q {name}", f"A {name}")
    conversation = group.turn().conversation_id

    everyone = await memory.list_messages(conversation)
    alice = await memory.list_messages(conversation, group.person("alice"))
    last = await memory.list_messages(conversation, limit=1)

    assert [row["content"] for row in everyone] == ["Q alice", "A alice", "Q bob", "A bob"]
    assert [row["content"] for row in alice] == ["Q alice", "A alice"]
    assert [row["content"] for row in last] == ["A bob"]


async def test_a_memory_that_answers_passes_the_ping(memory: MemoryStore) -> None:
    await memory.ping()
