"""What a person and the bot just said elsewhere in the chat comes with the turn that is begun."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memory.outcomes import BY_COMMAND
from memory.recall.passages import passages, recall_at_once, usual_scope
from memory.scope import AgentMemoryContext
from memory.store import MemoryStore
from tests.support.exchanges import exchange, texts
from tests.support.people import Group

pytestmark = pytest.mark.anyio


async def recent(
    memory: MemoryStore, who: AgentMemoryContext, *, recent_s: int = 3600, limit: int = 10
) -> list[str]:
    opened = await memory.begin_turn(
        who, turn_id=f"om_now_{who.root_id}_{who.chat_id}_{who.actor_id}", content="and now?",
        history_limit=limit, recent_s=recent_s,
    )  # fmt: skip
    assert opened.told[-1].content == "and now?"
    assert [m.content for m in opened.history] == ["and now?"]
    return [message.content for message in opened.recent]


async def test_exchanges_of_other_threads_come_oldest_first_with_their_cards_as_one(
    memory: MemoryStore, group: Group
) -> None:
    await exchange(memory, group.turn("alice", thread="a"), "Tea?", "first card", "second card")
    await exchange(memory, group.turn("alice", thread="b"), "Milk?", "yes")

    found = await recent(memory, group.turn("alice", thread="c"))

    assert found == ["Tea?", "first card\n\nsecond card", "Milk?", "yes"]


async def test_there_are_as_many_as_the_window_shows_beside_the_question(
    memory: MemoryStore, group: Group
) -> None:
    for thread in "abc":
        await exchange(memory, group.turn("alice", thread=thread), f"Q{thread}", f"A{thread}")

    found = await recent(memory, group.turn("alice", thread="d"), limit=4)

    assert found == ["Ab", "Qc", "Ac"]


async def test_commands_and_their_answers_are_not_told(memory: MemoryStore, group: Group) -> None:
    here = group.turn("alice", thread="c")
    await exchange(memory, group.turn("alice", thread="a"), "/why", "because", means=BY_COMMAND)
    await exchange(memory, here, "Tea?", "yes")
    await exchange(memory, here, "/help", "what I can do", means=BY_COMMAND)

    opened = await memory.open_turn(here, turn_id=group.message("q"), content="/help, and now?")

    assert texts(opened)[:-1] == ["Tea?", "yes", "/help", "what I can do"]
    assert [m.content for m in opened.told] == ["Tea?", "yes", "/help, and now?"]


async def test_what_a_command_listed_is_told_for_the_next_question(
    memory: MemoryStore, group: Group
) -> None:
    here, turn_id = group.turn(), group.message("notes")
    listed = {"name": "list_notes", "arguments": {}, "result": [], "ok": True, "ms": 0}
    await memory.open_turn(here, turn_id=turn_id, content="/notes")
    await memory.record_reply(
        here, turn_id=turn_id, cards=["1. Pasta"], tool_calls=[listed], means=BY_COMMAND
    )

    opened = await memory.open_turn(here, turn_id=group.message("q"), content="the first one?")

    assert [m.content for m in opened.told] == ["/notes", "1. Pasta", "the first one?"]


async def test_nothing_comes_unless_it_is_asked_for(memory: MemoryStore, group: Group) -> None:
    await exchange(memory, group.turn("alice", thread="a"), "Tea?", "yes")

    assert await recent(memory, group.turn("alice", thread="b"), recent_s=0) == []


async def test_what_one_asked_and_what_was_asked_about_one_comes_and_nothing_of_other_chats(
    memory: MemoryStore, group: Group
) -> None:
    await exchange(memory, group.turn("bob", thread="a"), "Bob's", "own")
    await exchange(memory, group.turn("alice", sender="bob", thread="b"), "on Alice", "by Bob")
    await exchange(memory, group.turn("bob", sender="alice", thread="c"), "on Bob", "by Alice")
    await exchange(memory, group.turn("alice", chat="there", thread="d"), "elsewhere", "x")
    await exchange(memory, group.turn("alice", tenant="other", thread="e"), "abroad", "x")

    found = await recent(memory, group.turn("alice", thread="f"))

    assert found == ["on Alice", "by Bob", "on Bob", "by Alice"]


async def test_with_a_person_meant_comes_what_the_asker_and_they_said(
    memory: MemoryStore, group: Group
) -> None:
    await exchange(memory, group.turn("bob", thread="a"), "Bob's", "own")
    await exchange(memory, group.turn("alice", thread="b"), "Alice's", "own too")
    await exchange(memory, group.turn("carol", thread="c"), "Carol's", "x")

    found = await recent(memory, group.turn("alice", sender="bob", thread="d"))

    assert found == ["Bob's", "own", "Alice's", "own too"]


async def test_a_fresh_start_ends_what_came_before_it_in_all_threads(
    memory: MemoryStore, group: Group
) -> None:
    await exchange(memory, group.turn("alice", thread="a"), "Tea?", "yes")
    await exchange(memory, group.turn("alice", thread="b"), "/new", "done")
    await memory.start_afresh(group.turn("alice", thread="b"))
    await exchange(memory, group.turn("alice", thread="c"), "Milk?", "no")

    assert await recent(memory, group.turn("alice", thread="d")) == ["Milk?", "no"]


async def begun(memory: MemoryStore, who: AgentMemoryContext, question: str) -> list[str] | None:
    """The questions of the turns that are recalled with the beginning of this one."""
    now = datetime.now(UTC)
    opened = await memory.begin_turn(
        who,
        turn_id=f"om_{who.root_id}_{question}",
        content=question,
        recall=recall_at_once(who, question, now=now, k=5),
    )
    if opened.recalled is None:
        return None
    found = await memory.find(
        who, question, now=now, scope=usual_scope(who), before_id=opened.history[0].id
    )
    assert passages(opened.recalled)[:5] == found
    return [passage.question for passage in found]


async def test_what_was_said_before_is_recalled_with_the_turn_that_is_begun(
    memory: MemoryStore, group: Group
) -> None:
    await exchange(memory, group.turn("bob", thread="a"), "The launch is in May", "noted")
    await exchange(memory, group.turn("bob", thread="b"), "Lunch is at noon", "noted")
    await exchange(memory, group.turn("bob", chat="there", thread="c"), "No launch here", "noted")

    assert await begun(memory, group.turn("alice", thread="d"), "When is the launch?") == [
        "The launch is in May"
    ]
    assert await begun(memory, group.turn("alice", thread="e"), "Is there a zeppelin?") == []


async def test_what_the_thread_holds_already_is_not_looked_for_elsewhere(
    memory: MemoryStore, group: Group
) -> None:
    await exchange(memory, group.turn("bob", thread="a"), "The launch is in May", "noted")
    thread = group.turn("alice", thread="b")
    await exchange(memory, thread, "Launch the rocket", "done")

    assert await begun(memory, thread, "And the LAUNCH of the rocket?") is None
    assert await begun(memory, thread, "What did Bob say about the launch before?") == [
        "The launch is in May"
    ]
