"""The spool in the queue's database, and what the memory makes of a turn that comes from it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict, replace
from typing import Any

import psycopg
import pytest

from bot.queue.operator_actions import QueueOperations
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.errors import AccessDenied, NotMigrated, TurnUnknown
from memory.fallback.drain import Drain
from memory.fallback.spool import Spool, SpooledTurn
from memory.fallback.writes import LateWrite
from memory.models import StoredCard
from memory.store import MemoryStore
from tests.support.exchanges import exchange, texts
from tests.support.people import Group

pytestmark = pytest.mark.anyio

PENDING = (StoredCard(0, "A", "pending"),)


@pytest.fixture
async def spool(database_url: str) -> AsyncIterator[Spool]:
    pool = connection_pool(database_url, size=4)
    await pool.open()
    yield Spool(pool)
    await pool.close()


@pytest.fixture
def memory(rpc: PostgresRpc) -> MemoryStore:
    return MemoryStore(rpc)


@pytest.fixture
def drain(rpc: PostgresRpc, spool: Spool) -> Drain:
    return Drain(rpc, spool, lease_s=1.0)


@pytest.fixture
def group() -> Group:
    return Group()


def _turn(group: Group, name: str = "q", **changes: Any) -> SpooledTurn:
    content = changes.pop("content", f"Question {name}")
    turn = SpooledTurn(group.message(name), group.turn(), content, "Alice 爱丽丝")
    return replace(turn, **changes)


async def test_a_turn_comes_back_as_it_was_kept(spool: Spool, group: Group) -> None:
    turn = _turn(group, content="  ' \" \\ {} 你好 🌏\n")

    kept = await spool.open_turn(turn)

    assert kept.asked_at is not None
    assert replace(kept, asked_at=None, version=0) == turn


async def test_a_redelivered_turn_is_found_with_its_reply_and_counted(
    spool: Spool, group: Group
) -> None:
    turn = _turn(group)
    await spool.open_turn(turn)
    await spool.record_reply(turn.turn_id, PENDING, [{"name": "list_notes"}])

    again = await spool.open_turn(turn)

    assert (again.state, again.attempts, again.cards) == ("pending", 2, PENDING)
    assert again.tool_calls == ({"name": "list_notes"},)


async def test_of_several_replies_the_first_stays(spool: Spool, group: Group) -> None:
    turn = _turn(group)
    await spool.open_turn(turn)

    kept = await asyncio.gather(
        *(
            spool.record_reply(turn.turn_id, (StoredCard(0, f"A{n}", "pending"),), [])
            for n in range(5)
        )
    )

    assert len({found.cards for found in kept if found}) == 1


async def test_a_turn_is_sent_with_its_last_card(spool: Spool, group: Group) -> None:
    turn = _turn(group)
    cards = (StoredCard(0, "one", "pending"), StoredCard(1, "two", "pending"))
    await spool.open_turn(turn)
    await spool.record_reply(turn.turn_id, cards, [])

    first = await spool.mark_sent(turn.turn_id, chunk=0, content="1", message_id="om_1")
    last = await spool.mark_sent(turn.turn_id, chunk=1, content="two", message_id="om_2")

    assert first is not None
    assert last is not None
    assert (first.state, last.state) == ("pending", "sent")
    assert last.cards == (
        StoredCard(0, "1", "sent", "om_1"),
        StoredCard(1, "two", "sent", "om_2"),
    )


async def test_a_turn_that_is_not_here_is_nobody(spool: Spool) -> None:
    assert await spool.record_reply("om_none", PENDING, []) is None
    assert await spool.mark_sent("om_none", chunk=0, content="A", message_id="om_1") is None
    assert await spool.mark_failed("om_none", "230002") is None


async def test_the_turn_of_another_conversation_is_refused(spool: Spool, group: Group) -> None:
    turn = _turn(group)
    await spool.open_turn(turn)

    with pytest.raises(AccessDenied):
        await spool.open_turn(replace(turn, context=group.turn("bob")))


async def test_a_thread_is_written_in_order_and_leaves_the_spool(
    spool: Spool, drain: Drain, memory: MemoryStore, group: Group
) -> None:
    context = group.turn()
    await exchange(memory, context, "Q0", "A0")
    for n in range(1, 4):
        turn = _turn(group, f"q{n}", content=f"Q{n}")
        await spool.open_turn(turn)
        await spool.record_reply(turn.turn_id, (StoredCard(0, f"A{n}", "pending"),), [])
        await spool.mark_sent(turn.turn_id, chunk=0, content=f"A{n}", message_id=f"om_a{n}")

    assert await drain.everything() == 3
    assert await drain.everything() == 0

    rows = await memory.list_messages(context.conversation_id)
    assert [row["content"] for row in rows] == ["Q0", "A0", "Q1", "A1", "Q2", "A2", "Q3", "A3"]
    assert {row["status"] for row in rows} == {"received", "sent"}
    assert [row["message_id"] for row in rows][3::2] == ["om_a1", "om_a2", "om_a3"]
    assert drain.known_empty


async def test_rows_keep_the_time_at_which_it_was_said(
    spool: Spool, drain: Drain, memory: MemoryStore, group: Group, database_url: str
) -> None:
    turn = _turn(group)
    await spool.open_turn(turn)
    await spool.record_reply(turn.turn_id, PENDING, [])
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        await connection.execute(
            "update feishu_bot.spool set asked_at = '2026-01-02 03:04:05Z',"
            " answered_at = '2026-01-02 03:04:09Z'"
        )

    await drain.everything()

    rows = await memory.list_messages(turn.context.conversation_id)
    assert [row["created_at"][:19] for row in rows] == [
        "2026-01-02T03:04:05",
        "2026-01-02T03:04:09",
    ]


async def test_two_workers_that_drain_at_once_write_each_turn_once_and_in_order(
    spool: Spool, rpc: PostgresRpc, memory: MemoryStore, group: Group
) -> None:
    for n in range(30):
        turn = _turn(group, f"q{n}", content=f"Q{n:02}")
        await spool.open_turn(turn)
        await spool.record_reply(turn.turn_id, (StoredCard(0, f"A{n:02}", "pending"),), [])

    await asyncio.gather(*(Drain(rpc, spool, lease_s=1.0).everything() for _ in range(3)))

    rows = await memory.list_messages(group.turn().conversation_id)
    assert [row["content"] for row in rows] == [f"{r}{n:02}" for n in range(30) for r in "QA"]


async def test_a_turn_that_changes_while_it_is_written_stays_until_the_change_is_written(
    spool: Spool, drain: Drain, memory: MemoryStore, group: Group
) -> None:
    turn = await spool.open_turn(_turn(group))
    await drain.thread(turn.context.conversation_id, turn.context.user_id)
    kept = await spool.open_turn(_turn(group))
    await spool.record_reply(turn.turn_id, PENDING, [])

    assert not await spool.drop(kept)
    await drain.everything()

    rows = await memory.list_messages(turn.context.conversation_id)
    assert [row["content"] for row in rows] == ["Question q", "A"]


async def test_the_turn_goes_on_in_the_memory_after_it_was_written(
    spool: Spool, drain: Drain, memory: MemoryStore, group: Group
) -> None:
    turn = await spool.open_turn(_turn(group))
    await drain.everything()

    state, _ = await memory.record_reply(turn.context, turn_id=turn.turn_id, cards=["A"])
    opened = await memory.open_turn(turn.context, turn_id=turn.turn_id, content=turn.content)

    assert (state, opened.state, opened.reply) == ("pending", "pending", PENDING)


async def test_a_pending_reply_is_resumed_from_the_memory_with_the_same_text(
    spool: Spool, drain: Drain, memory: MemoryStore, group: Group
) -> None:
    turn = await spool.open_turn(_turn(group))
    await spool.record_reply(turn.turn_id, PENDING, [{"name": "t"}])
    await drain.everything()

    opened = await memory.open_turn(turn.context, turn_id=turn.turn_id, content=turn.content)

    assert (opened.state, opened.reply) == ("pending", PENDING)


async def test_an_undelivered_reply_is_written_as_failed(
    spool: Spool, drain: Drain, memory: MemoryStore, group: Group
) -> None:
    turn = await spool.open_turn(_turn(group))
    await spool.record_reply(turn.turn_id, PENDING, [])
    await spool.mark_failed(turn.turn_id, "feishu 230002")
    await drain.everything()

    opened = await memory.open_turn(turn.context, turn_id=turn.turn_id, content=turn.content)
    rows = await memory.list_messages(turn.context.conversation_id)

    assert opened.state == "failed"
    assert [(row["status"], row["error"]) for row in rows] == [
        ("received", None),
        ("failed", "feishu 230002"),
    ]


async def test_a_turn_that_was_lost_between_storing_and_sending_ends_as_it_was_sent(
    spool: Spool, drain: Drain, memory: MemoryStore, group: Group
) -> None:
    turn = _turn(group)
    opening = {"turn_id": turn.turn_id, "content": turn.content}
    await memory.open_turn(turn.context, **opening)
    await memory.record_reply(
        turn.context, turn_id=turn.turn_id, cards=["A", "B"], tool_calls=[{"name": "t"}]
    )
    cards = (StoredCard(0, "A", "sent", "om_a"), StoredCard(1, "B", "pending"))
    await spool.open_turn(replace(turn, state="pending", cards=cards))
    await spool.mark_sent(turn.turn_id, chunk=1, content="b", message_id="om_b")
    await drain.everything()

    opened = await memory.open_turn(turn.context, **opening)
    rows = await memory.list_messages(turn.context.conversation_id)

    assert opened.state == "sent"
    assert [(row["content"], row["message_id"]) for row in rows[1:]] == [
        ("A", "om_a"),
        ("b", "om_b"),
    ]
    assert rows[1]["tool_calls"] == [{"name": "t"}]


@pytest.mark.parametrize("stored", [["A1"], ["A1", "A2", "A3"]])
async def test_what_people_saw_replaces_a_reply_that_nobody_saw(
    spool: Spool, drain: Drain, memory: MemoryStore, group: Group, stored: list[str]
) -> None:
    turn = _turn(group)
    await memory.open_turn(turn.context, turn_id=turn.turn_id, content=turn.content)
    await memory.record_reply(turn.context, turn_id=turn.turn_id, cards=stored)
    cards = (StoredCard(0, "B1", "sent", "om_1"), StoredCard(1, "B2", "sent", "om_2"))
    await spool.open_turn(replace(turn, state="sent", cards=cards))
    await drain.everything()

    opened = await memory.open_turn(turn.context, turn_id=turn.turn_id, content=turn.content)
    following = await memory.open_turn(turn.context, turn_id=group.message("q2"), content="Q2")

    assert opened.state == "sent"
    assert texts(following) == ["Question q", "B1\n\nB2", "Q2"]


async def test_a_reply_that_nobody_saw_does_not_replace_the_one_of_the_memory(
    spool: Spool, drain: Drain, memory: MemoryStore, group: Group
) -> None:
    turn = _turn(group)
    await memory.open_turn(turn.context, turn_id=turn.turn_id, content=turn.content)
    await memory.record_reply(turn.context, turn_id=turn.turn_id, cards=["stored"])
    cards = (StoredCard(0, "spooled", "pending"),)
    await spool.open_turn(replace(turn, state="pending", cards=cards))
    await drain.everything()

    opened = await memory.open_turn(turn.context, turn_id=turn.turn_id, content=turn.content)

    assert [card.content for card in opened.reply] == ["stored"]


async def test_an_older_state_that_arrives_late_changes_nothing(
    spool: Spool, drain: Drain, rpc: PostgresRpc, memory: MemoryStore, group: Group
) -> None:
    turn = _turn(group)
    older = await spool.open_turn(replace(turn, state="pending", cards=PENDING))
    await spool.mark_sent(turn.turn_id, chunk=0, content="A", message_id="om_a")
    await drain.everything()
    await spool.open_turn(replace(older, asked_at=None))
    await drain.everything()

    rows = await memory.list_messages(turn.context.conversation_id)
    assert [(row["content"], row["status"]) for row in rows] == [
        ("Question q", "received"),
        ("A", "sent"),
    ]


async def test_a_question_that_was_recalled_meanwhile_is_not_written(
    spool: Spool, drain: Drain, memory: MemoryStore, group: Group, database_url: str
) -> None:
    turn = await spool.open_turn(_turn(group))
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        await connection.execute(
            "insert into public.recalled_messages (message_id, chat_id) values (%s, %s)",
            [turn.turn_id, turn.context.chat_id],
        )

    await drain.everything()

    assert await memory.list_messages(turn.context.conversation_id) == ()
    with pytest.raises(TurnUnknown):
        await memory.record_reply(turn.context, turn_id=turn.turn_id, cards=["A"])


async def test_a_turn_the_memory_refuses_is_set_aside_and_does_not_hold_up_the_others(
    spool: Spool, drain: Drain, memory: MemoryStore, group: Group
) -> None:
    taken = group.message("taken")
    await memory.open_turn(group.turn("bob"), turn_id=taken, content="Bob's")
    await spool.open_turn(_turn(group, turn_id=taken))
    await spool.open_turn(_turn(group, "q2"))

    await drain.everything()

    state = await spool.state()
    rows = await memory.list_messages(group.turn().conversation_id, group.person("alice"))
    assert (state.waiting, state.refused) == (0, 1)
    assert [row["content"] for row in rows] == ["Question q2"]
    assert await spool.take_back() == 1
    assert (await spool.state()).waiting == 1


async def test_the_words_of_someone_else_are_written_under_their_own_identity(
    spool: Spool, drain: Drain, memory: MemoryStore, group: Group
) -> None:
    context = group.turn("john", sender="alice")
    turn = SpooledTurn(group.message("q"), context, "for John", state="pending", cards=PENDING)
    await spool.open_turn(turn)
    await spool.mark_sent(turn.turn_id, chunk=0, content="A", message_id="om_a")

    await drain.everything()

    rows = await memory.list_messages(context.conversation_id)
    assert [(row["user_id"], row["actor_id"]) for row in rows] == [
        (group.person("john"), group.person("alice")),
        (group.person("john"), group.person("alice")),
    ]


async def test_what_waits_can_be_forgotten(spool: Spool, group: Group) -> None:
    bob = replace(_turn(group, "bob"), context=group.turn("bob", sender="alice"))
    carol = replace(_turn(group, "carol"), context=group.turn("carol", thread="other"))
    for turn in (_turn(group), bob, carol):
        await spool.open_turn(turn)

    assert await spool.forget(user_id=group.person("alice"), tenant_key="elsewhere") == 0
    assert await spool.forget(user_id=group.person("alice"), tenant_key="tenant") == 2
    assert await spool.forget() == 0
    assert await spool.forget(conversation_id=carol.context.conversation_id) == 1
    assert (await spool.state()).waiting == 0


@pytest.mark.parametrize("role", ["anon", "authenticated", "service_role"])
async def test_no_role_of_the_api_reaches_the_spool(
    spool: Spool, group: Group, database_url: str, role: str
) -> None:
    turn = await spool.open_turn(_turn(group))
    statements = {
        "read": "select * from feishu_bot.spool",
        "call": "select feishu_bot.spool_state(1)",
    }
    for statement in statements.values():
        async with await psycopg.AsyncConnection.connect(database_url) as connection:
            await connection.execute(f"set local role {role}")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                await connection.execute(statement)

    assert asdict(turn)["turn_id"] == turn.turn_id


def _write(group: Group, name: str, *people: str) -> LateWrite:
    context = group.turn()
    params = {"p_chat_id": context.chat_id, "p_message_id": group.message(name)}
    return LateWrite("log_decision", params, context, (group.message(name),), people)


async def _recalled_rows(database_url: str) -> list[str]:
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        rows = await connection.execute("select message_id from public.recalled_messages")
        return [name for (name,) in await rows.fetchall()]


async def test_a_card_that_only_the_spool_knows_is_withdrawn_when_the_memory_is_back(
    spool: Spool, drain: Drain, group: Group, database_url: str
) -> None:
    turn = await spool.open_turn(_turn(group))
    await spool.record_reply(turn.turn_id, [StoredCard(0, "Answer", "pending")], [])
    await spool.mark_sent(turn.turn_id, chunk=0, content="Answer", message_id="om_card")

    await spool.keep_recall(turn.turn_id, turn.context.chat_id)
    await drain.everything()

    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        rows = await connection.execute("select message_id from public.agent_withdrawals")
        assert await rows.fetchall() == [("om_card",)]


async def test_a_question_taken_back_while_it_waits_is_gone_and_not_answered(
    spool: Spool, drain: Drain, memory: MemoryStore, group: Group, database_url: str
) -> None:
    turn = await spool.open_turn(_turn(group))
    await spool.keep_write(_write(group, "q"))
    for _ in range(2):
        await spool.keep_recall(turn.turn_id, turn.context.chat_id)
    await spool.keep_write(_write(group, "q"))

    state = await spool.state()
    again = await spool.open_turn(_turn(group))
    assert (state.waiting, state.recalls, state.writes) == (0, 1, 0)
    assert (again.state, again.content) == ("cancelled", "")
    assert await spool.record_reply(turn.turn_id, PENDING, []) is None

    await drain.everything()

    assert await memory.list_messages(turn.context.conversation_id) == ()
    assert await _recalled_rows(database_url) == [turn.turn_id]
    assert (await spool.state()).recalls == 0


async def test_the_memory_hears_of_a_recall_before_the_next_turn_of_any_thread(
    spool: Spool, drain: Drain, memory: MemoryStore, group: Group
) -> None:
    context = group.turn()
    await memory.open_turn(context, turn_id=group.message("plum"), content="a secret")
    await spool.keep_recall(group.message("plum"), context.chat_id)
    assert not drain.known_empty

    await drain.thread(context.conversation_id, context.user_id)

    opened = await memory.open_turn(context, turn_id=group.message("q2"), content="Q2")
    assert texts(opened) == ["Q2"]


async def test_a_write_that_the_memory_refuses_is_set_aside(
    spool: Spool, drain: Drain, group: Group
) -> None:
    wrong = LateWrite("log_decision", {"p_nothing": 1}, group.turn(), (group.message("q"),))
    await spool.keep_write(wrong)

    await drain.everything()

    state = await spool.state()
    assert (state.writes, state.refused) == (0, 1)
    assert await spool.take_back() == 1
    assert (await spool.state()).writes == 1


async def test_nothing_is_set_aside_because_the_whole_memory_lacks_its_functions(
    spool: Spool, group: Group, blank_database_url: str
) -> None:
    pool = connection_pool(blank_database_url, size=1)
    await pool.open()
    await spool.keep_write(_write(group, "q"))

    with pytest.raises(NotMigrated):
        await Drain(PostgresRpc(pool), spool, lease_s=1.0).everything()

    state = await spool.state()
    assert (state.writes, state.refused) == (1, 0)
    await pool.close()


async def test_what_waits_of_a_person_a_thread_or_a_message_can_be_exported_and_forgotten(
    spool: Spool, group: Group, database_url: str
) -> None:
    alice = group.person("alice")
    queue = QueueOperations(database_url)
    of_message = {"message_id": group.message("q")}
    of_thread = {"conversation_id": group.turn().conversation_id}
    for which, left in (({"open_id": alice}, 1), (of_message, 2), (of_thread, 0)):
        await spool.keep_write(_write(group, "q", alice))
        await spool.keep_write(_write(group, "other", group.person("bob")))
        assert [table for table, _ in queue.export(alice)] == ["late_writes"]

        queue.forget(**which)

        assert queue.export(alice) == []
        assert (await spool.state()).writes == left, "Bob's go with the thread only"


async def test_the_depth_of_the_queue_tells_what_waits_for_the_memory(
    spool: Spool, group: Group, database_url: str
) -> None:
    await spool.open_turn(_turn(group))
    await spool.keep_write(_write(group, "q2"))

    depth = QueueOperations(database_url).depth()

    assert (depth.spooled, depth.refused) == (1, 0)
    assert depth.oldest_spooled_s is not None


async def test_a_turn_knows_for_how_long_the_spool_was_not_empty(
    spool: Spool, group: Group, database_url: str
) -> None:
    first = await spool.open_turn(_turn(group))
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        await connection.execute("update feishu_bot.spool set asked_at = now() - interval '9 s'")
    second = await spool.open_turn(_turn(group, "q2"))

    assert first.oldest_s < 9 <= second.oldest_s < 60
