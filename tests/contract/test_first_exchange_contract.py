"""A thread knows the exchange that its first message is of, wherever that is stored."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memory.scope import AgentMemoryContext, conversation_id
from memory.store import MemoryStore
from tests.support.exchanges import exchange, texts
from tests.support.people import Group

pytestmark = pytest.mark.anyio


def under(context: AgentMemoryContext, root: str) -> AgentMemoryContext:
    """The same people in the thread under a message of that chat."""
    return replace(context, root_id=root, conversation_id=conversation_id(context.chat_id, root))


async def history(memory: MemoryStore, context: AgentMemoryContext, limit: int = 10) -> list[str]:
    turn_id = f"om_later_{context.conversation_id}_{context.user_id}"
    opened = await memory.begin_turn(context, turn_id=turn_id, content="and?", history_limit=limit)
    return texts(opened)


async def test_a_quoting_question_kept_under_what_it_quoted_is_known_in_the_thread_of_its_answer(
    memory: MemoryStore, group: Group
) -> None:
    as_it_was_kept = group.turn("alice", thread="quoted")
    await exchange(memory, as_it_was_kept, "before", "said before")
    await exchange(memory, as_it_was_kept, "B", "the answer to B")

    thread = under(as_it_was_kept, f"om_B_{as_it_was_kept.chat_id}")

    assert await history(memory, thread) == ["B", "the answer to B", "and?"]


async def test_a_thread_opened_under_an_answer_in_p2p_knows_that_exchange(
    memory: MemoryStore, group: Group
) -> None:
    alone = group.p2p("alice")
    await exchange(memory, alone, "A", "the first answer")
    await exchange(memory, alone, "B", "the second answer")

    thread = under(alone, f"om_A_{alone.chat_id}_card0")

    assert await history(memory, thread) == ["A", "the first answer", "and?"]


async def test_everybody_of_the_place_sees_it_and_apart_only_whoever_asked_or_was_meant(
    memory: MemoryStore, apart: MemoryStore, group: Group
) -> None:
    asked = group.turn("bob", sender="alice", thread="quoted")
    await exchange(memory, asked, "B", "about Bob")
    root = f"om_B_{asked.chat_id}"

    for who, known in (("alice", True), ("bob", True), ("carol", False)):
        assert "about Bob" in await history(memory, under(group.turn(who), root))
        said = await history(apart, under(group.turn(who), root))
        assert ("about Bob" in said) is known, who


async def test_a_fresh_start_in_the_thread_ends_it(memory: MemoryStore, group: Group) -> None:
    kept = group.turn("alice", thread="quoted")
    await exchange(memory, kept, "B", "the answer to B")
    thread = under(kept, f"om_B_{kept.chat_id}")
    await exchange(memory, thread, "/new", "done")
    await memory.start_afresh(thread)

    assert await history(memory, thread) == ["and?"]


async def test_a_long_thread_shows_its_root_and_its_newest_messages(
    memory: MemoryStore, group: Group
) -> None:
    kept = group.turn("alice", thread="quoted")
    await exchange(memory, kept, "B", "the answer to B")
    thread = under(kept, f"om_B_{kept.chat_id}")
    await exchange(memory, thread, "C", "the answer to C")

    said = await history(memory, thread, limit=3)
    assert said == ["B", "the answer to B", "C", "the answer to C", "and?"]


async def test_a_message_of_another_chat_begins_no_thread_here(
    memory: MemoryStore, group: Group
) -> None:
    there = group.turn("alice", chat="there", thread="quoted")
    await exchange(memory, there, "B", "said elsewhere")

    thread = under(group.turn("alice"), f"om_B_{there.chat_id}")

    assert await history(memory, thread) == ["and?"]
