"""A mention outside of threads sees what was said in the chat just before, by anybody."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bot.listening.conversation_store import ChatConversations
from bot.listening.transcript import MessageRecord
from memory.models import ANSWERED_BY_COMMAND
from memory.recall.passages import passages, recall_at_once, usual_scope
from memory.scope import AgentMemoryContext
from memory.store import MemoryStore
from tests.support.backends import Backend
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
    return [message.content for message in opened.history[:-1]]


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
    await exchange(
        memory, group.turn("alice", thread="a"), "/why", "because", means=ANSWERED_BY_COMMAND
    )
    await exchange(memory, here, "Tea?", "yes")
    await exchange(memory, here, "/help", "what I can do", means=ANSWERED_BY_COMMAND)

    opened = await memory.begin_turn(here, turn_id=group.message("q"), content="/help, and now?")

    assert texts(opened)[:-1] == ["Tea?", "yes", "/help", "what I can do"]
    assert [m.content for m in opened.told] == ["Tea?", "yes", "/help, and now?"]


async def test_what_a_command_listed_is_told_for_the_next_question(
    memory: MemoryStore, group: Group
) -> None:
    here, turn_id = group.turn(), group.message("notes")
    listed = {"name": "list_notes", "arguments": {}, "result": [], "ok": True, "ms": 0}
    await memory.begin_turn(here, turn_id=turn_id, content="/notes")
    await memory.record_reply(
        here, turn_id=turn_id, cards=["1. Pasta"], tool_calls=[listed], means=ANSWERED_BY_COMMAND
    )

    opened = await memory.begin_turn(here, turn_id=group.message("q"), content="the first one?")

    assert [m.content for m in opened.told] == ["/notes", "1. Pasta", "the first one?"]


async def test_nothing_comes_unless_it_is_asked_for(memory: MemoryStore, group: Group) -> None:
    await exchange(memory, group.turn("alice", thread="a"), "Tea?", "yes")

    assert await recent(memory, group.turn("alice", thread="b"), recent_s=0) == []


async def test_a_line_to_nobody_stands_among_the_others_once(
    memory: MemoryStore, backend: Backend, group: Group
) -> None:
    here = group.turn("alice", thread="a")
    await exchange(memory, here, "Tea?", "yes")
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    lines = [
        MessageRecord("Bob", group.person("bob"), "the gala moved", now_ms, False, "om_talk"),
        MessageRecord("Alice", here.actor_id, "Tea?", now_ms, False, f"om_Tea?_{here.chat_id}"),
        MessageRecord("Robo", "ou_robo", "build failed", now_ms + 1, True, "om_robo"),
        MessageRecord("Memo", "ou_memo", "yes", now_ms, True, "om_card", ours=True),
    ]
    async with backend.rpc() as rpc:
        await ChatConversations(rpc, here).begin(here.chat_id, now_ms, lines)

    opened = await memory.begin_turn(
        group.turn("carol", thread="b"), turn_id=group.message("q"), content="so?", recent_s=3600
    )

    assert texts(opened) == ["Tea?", "yes", "the gala moved", "build failed", "so?"]
    assert [one.by_bot for one in opened.history] == [False, False, False, True, False]


async def test_what_anybody_said_comes_and_nothing_of_other_chats(
    memory: MemoryStore, group: Group
) -> None:
    await exchange(memory, group.turn("bob", thread="a"), "Bob's", "own")
    await exchange(memory, group.turn("alice", sender="bob", thread="b"), "on Alice", "by Bob")
    await exchange(memory, group.turn("alice", chat="there", thread="d"), "elsewhere", "x")
    await exchange(memory, group.turn("alice", tenant="other", thread="e"), "abroad", "x")

    for asker in ("alice", "bob", "carol"):
        found = await recent(memory, group.turn(asker, thread=f"f{asker}"))
        assert found[:4] == ["Bob's", "own", "on Alice", "by Bob"]
        assert set(found[4:]) <= {"and now?"}


async def test_where_people_are_kept_apart_only_the_askers_own_comes(
    apart: MemoryStore, group: Group
) -> None:
    await exchange(apart, group.turn("bob", thread="a"), "Bob's", "own")
    await exchange(apart, group.turn("alice", sender="bob", thread="b"), "on Alice", "by Bob")
    await exchange(apart, group.turn("bob", sender="alice", thread="c"), "on Bob", "by Alice")

    assert await recent(apart, group.turn("carol", thread="d")) == []
    found = await recent(apart, group.turn("alice", thread="e"))
    assert found == ["on Alice", "by Bob", "on Bob", "by Alice"]


async def test_a_thread_sees_its_root_and_what_the_mention_that_opened_it_saw(
    memory: MemoryStore, group: Group
) -> None:
    await exchange(memory, group.turn("alice", thread="a"), "The gala is on 3 March", "noted")
    await exchange(memory, group.turn("bob", thread="other"), "Milk?", "no")
    root = group.turn("bob", thread="b")
    await memory.begin_turn(root, turn_id=root.root_id, content="Tea?", recent_s=3600)
    await exchange(memory, group.turn("alice", thread="other"), "Later, elsewhere", "yes")

    opened = await memory.begin_turn(
        group.turn("carol", thread="b"), turn_id=group.message("now"), content="and now?"
    )

    assert texts(opened) == [
        "The gala is on 3 March", "noted", "Milk?", "no", "Tea?", "and now?"
    ]  # fmt: skip


async def test_lines_stand_in_the_order_in_which_they_were_written(
    memory: MemoryStore, group: Group
) -> None:
    here = group.turn("alice")
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    for text, ago_s in (("The gala is on 10 March", 10), ("The gala is on 3 March", 60)):
        turn_id = group.message(text)
        await memory.begin_turn(here, turn_id=turn_id, content=text, asked_ms=now_ms - ago_s * 1000)

    opened = await memory.begin_turn(
        group.turn("bob"), turn_id=group.message("q"), content="when is the gala?"
    )

    assert texts(opened)[:-1] == ["The gala is on 3 March", "The gala is on 10 March"]


async def test_of_what_others_said_the_newest_lines_stay_and_of_the_askers_own_the_last(
    memory: MemoryStore, group: Group
) -> None:
    bob, alice = group.turn("bob"), group.turn("alice")
    await exchange(memory, bob, "My badge is 417", "noted")
    for number in range(12):
        await exchange(memory, alice, f"{number} {'word ' * 20}", "noted")

    opened = await memory.begin_turn(bob, turn_id=group.message("q"), content="so?")

    said = [text.split()[0] for text in texts(opened) if text != "noted"]
    assert said[0] == "My"
    assert said[1:-1] == [str(number) for number in range(12 - len(said) + 2, 12)]
    assert 4 < len(said) < 12


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
        turn_id=f"om_{who.root_id}_{who.chat_id}_{question}",
        content=question,
        recall=recall_at_once(who, question, now=now, k=5),
    )
    if opened.recalled is None:
        return None
    found = await memory.find(
        who, question, now=now, scope=usual_scope(who), before_id=opened.history[-1].id
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


async def test_alone_with_the_bot_what_the_window_holds_is_not_looked_for(
    memory: MemoryStore, group: Group
) -> None:
    here = group.p2p()
    await exchange(memory, here, "Launch the rocket", "done")

    assert await begun(memory, here, "And the LAUNCH of the rocket?") is None
    assert await begun(memory, here, "What did I say about the launch before?") is not None


async def test_in_a_group_it_is_looked_for_although_the_window_has_the_words(
    memory: MemoryStore, group: Group
) -> None:
    await exchange(memory, group.turn("bob", thread="a"), "The launch is in May", "noted")
    thread = group.turn("alice", thread="b")
    await exchange(memory, thread, "When is the launch?", "In May.")

    found = await begun(memory, thread, "And when is the launch now?")
    assert "The launch is in May" in (found or [])
