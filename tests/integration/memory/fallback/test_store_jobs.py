"""Jobs for a memory that is away: what the queue keeps, and what the memory makes of it later."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import psycopg
import pytest

from bot.queue.operator_actions import QueueOperations
from bot.queue.table import JobTable
from lab.doubles.sentinel import tables_with
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.errors import StoreQueueAway
from memory.fallback.store_jobs import LateWrite, MissedTurn, StoreJobs, late_write
from memory.models import StoredCard
from memory.scope import AgentMemoryContext
from memory.store import MemoryStore
from memory.tables.cards import Withdrawals
from memory.tables.sources import read_source_id
from tests.support.exchanges import exchange, texts
from tests.support.people import Group
from tests.support.queue import idle_presence
from tests.support.store_jobs import write_waiting

pytestmark = pytest.mark.anyio

PENDING = (StoredCard(0, "A", "pending"),)
ASKED_AT, ANSWERED_AT = "2026-01-02T03:04:05+00:00", "2026-01-02T03:04:09+00:00"
WORD = "qzvjkw7"


@dataclass
class Scene:
    """The queue's side, the memory's side, and what carries the one to the other."""

    url: str
    jobs: StoreJobs
    table: JobTable
    rpc: PostgresRpc
    memory: MemoryStore
    group: Group
    write: Callable[[], Awaitable[list[str]]]

    def turn(self, name: str = "q", **changes: Any) -> MissedTurn:
        turn = MissedTurn(
            self.group.turn(),
            self.group.message(name),
            f"Question {name}",
            ASKED_AT,
            "Alice 爱丽丝",
            state="pending",
            cards=PENDING,
            answered_at=ANSWERED_AT,
        )
        return replace(turn, **changes)

    async def keep(self, turn: MissedTurn) -> MissedTurn:
        await self.jobs.keep_turn(turn, unsent=True)
        return turn

    async def sent(self, turn: MissedTurn, chunk: int = 0, content: str = "A") -> Any:
        sent = {"chunk": chunk, "content": content, "message_id": f"{turn.turn_id}_{chunk}"}
        return await self.jobs.change_turn(turn.context, turn.turn_id, {"sent": sent})

    async def rows(self) -> list[tuple[str, str]]:
        found = await self.memory.list_messages(self.group.turn().conversation_id)
        return [(row["content"], row["status"]) for row in found]


@pytest.fixture
async def scene(database_url: str, rpc: PostgresRpc) -> AsyncIterator[Scene]:
    async with connection_pool(database_url, size=4) as pool:
        jobs, table = StoreJobs(pool), JobTable(pool)

        async def write() -> list[str]:
            return await write_waiting(database_url, jobs, table, rpc)

        yield Scene(database_url, jobs, table, rpc, MemoryStore(rpc), Group(), write)


async def test_a_turn_is_kept_once_with_the_reply_that_came_first(scene: Scene) -> None:
    said = "  ' \" \\ {} 你好 🌏\n"
    turn = scene.turn(content=said, cards=(StoredCard(0, said, "pending"),))
    others = [replace(turn, cards=(StoredCard(0, f"A{n}", "pending"),)) for n in range(4)]

    kept = await asyncio.gather(
        *(scene.jobs.keep_turn(one, unsent=True) for one in (turn, *others))
    )

    assert len({row["cards"][0]["content"] for row in kept}) == 1
    waiting = await scene.jobs.waiting(turn)
    assert waiting.turn == kept[0]
    assert (waiting.turn["content"], waiting.behind, waiting.recalled) == (said, True, False)
    assert (await scene.jobs.backlog()).turns == 1


async def test_only_turns_of_the_same_conversation_wait_for_it(scene: Scene) -> None:
    await scene.keep(scene.turn())

    assert (await scene.jobs.waiting(scene.turn("next"))).behind
    elsewhere = scene.turn("other", context=scene.group.turn(thread="other"))
    assert not (await scene.jobs.waiting(elsewhere)).behind


async def test_a_turn_is_sent_with_its_last_card(scene: Scene) -> None:
    cards = (StoredCard(0, "one", "pending"), StoredCard(1, "two", "pending"))
    turn = await scene.keep(scene.turn(cards=cards))

    noted = await scene.jobs.change_turn(turn.context, turn.turn_id, {"note": "> late\n"})
    again = await scene.jobs.change_turn(turn.context, turn.turn_id, {"note": "> late\n"})
    assert noted == again
    assert [card["content"] for card in noted["cards"]] == ["> late\none", "two"]
    first = await scene.sent(turn, 0, "> late\none")
    last = await scene.sent(turn, 1, "two")
    assert (first["state"], last["state"]) == ("pending", "sent")

    assert await scene.write() == []
    rows = await scene.rows()
    assert rows == [("Question q", "received"), ("> late\none", "sent"), ("two", "sent")]


async def test_a_turn_that_does_not_wait_is_not_changed(scene: Scene) -> None:
    assert await scene.sent(scene.turn()) is None


async def test_a_turn_that_is_being_written_is_changed_afterwards_or_not_at_all(
    scene: Scene,
) -> None:
    turn = await scene.keep(scene.turn())
    presence = idle_presence(scene.url)
    await presence.begin()
    await scene.jobs.wake()
    [job] = await scene.table.take(presence.worker, 1)

    change = asyncio.create_task(scene.sent(turn))
    await asyncio.sleep(0.2)
    assert not change.done()
    await scene.table.end(job, presence.worker)
    assert await change is None
    await presence.end()


async def test_a_chat_is_written_in_order_with_the_times_of_then(scene: Scene) -> None:
    await exchange(scene.memory, scene.group.turn(), "Q0", "A0")
    for n in range(1, 6):
        turn = scene.turn(f"q{n}", content=f"Q{n}", cards=(StoredCard(0, f"A{n}", "pending"),))
        await scene.sent(await scene.keep(turn), content=f"A{n}")

    assert await scene.write() == []

    rows = await scene.memory.list_messages(scene.group.turn().conversation_id)
    assert [row["content"] for row in rows] == [f"{r}{n}" for n in range(6) for r in "QA"]
    assert {row["created_at"][:19] for row in rows[2::2]} == {ASKED_AT[:19]}
    assert {row["created_at"][:19] for row in rows[3::2]} == {ANSWERED_AT[:19]}
    assert [row["message_id"] for row in rows][3::2] == [
        f"{scene.group.message(f'q{n}')}_0" for n in range(1, 6)
    ]


async def test_a_question_that_replies_to_a_message_still_does(scene: Scene) -> None:
    await scene.keep(scene.turn(quotes="om_above"))
    assert await scene.write() == []

    later = scene.group.message("later")
    opened = await scene.memory.begin_turn(scene.group.turn(), turn_id=later, content="And now?")
    assert opened.history[0].replies_to == "om_above"


async def test_a_pending_reply_is_resumed_from_the_memory_with_the_same_text(scene: Scene) -> None:
    turn = await scene.keep(scene.turn(shown={"language": "en", "seconds": 1.0}))
    await scene.write()

    opened = await scene.memory.begin_turn(turn.context, turn_id=turn.turn_id, content=turn.content)

    assert (opened.state, opened.reply) == ("pending", PENDING)
    assert opened.shown is not None
    assert opened.shown["seconds"] == 1.0


async def test_an_undelivered_reply_is_written_as_failed(scene: Scene) -> None:
    turn = await scene.keep(scene.turn())
    await scene.jobs.change_turn(turn.context, turn.turn_id, {"failed": "feishu 230002"})
    await scene.write()

    rows = await scene.memory.list_messages(turn.context.conversation_id)
    assert [(row["status"], row["error"]) for row in rows] == [
        ("received", None),
        ("failed", "feishu 230002"),
    ]


@pytest.mark.parametrize("stored", [["A1"], ["A1", "A2", "A3"]])
async def test_what_people_saw_replaces_a_reply_that_nobody_saw(
    scene: Scene, stored: list[str]
) -> None:
    cards = (StoredCard(0, "B1", "sent", "om_1"), StoredCard(1, "B2", "sent", "om_2"))
    turn = scene.turn(state="sent", cards=cards)
    await scene.memory.begin_turn(turn.context, turn_id=turn.turn_id, content=turn.content)
    await scene.memory.record_reply(turn.context, turn_id=turn.turn_id, cards=stored)
    await scene.keep(turn)
    await scene.write()

    following = await scene.memory.begin_turn(
        turn.context, turn_id=scene.group.message("q2"), content="Q2"
    )
    assert texts(following) == ["Question q", "B1\n\nB2", "Q2"]


async def test_a_reply_that_nobody_saw_does_not_replace_the_one_of_the_memory(
    scene: Scene,
) -> None:
    turn = scene.turn()
    opening = {"turn_id": turn.turn_id, "content": turn.content}
    await scene.memory.begin_turn(turn.context, **opening)
    await scene.memory.record_reply(turn.context, turn_id=turn.turn_id, cards=["stored"])
    await scene.keep(turn)
    await scene.write()

    opened = await scene.memory.begin_turn(turn.context, **opening)
    assert [card.content for card in opened.reply] == ["stored"]


async def test_a_job_that_is_written_twice_changes_nothing(scene: Scene) -> None:
    turn = await scene.keep(scene.turn())
    await scene.sent(turn)
    await scene.write()
    await scene.keep(turn)
    await scene.write()

    assert await scene.rows() == [("Question q", "received"), ("A", "sent")]


async def test_a_turn_the_memory_refuses_does_not_hold_up_the_others(scene: Scene) -> None:
    taken = scene.group.message("taken")
    await scene.memory.begin_turn(scene.group.turn("bob"), turn_id=taken, content="Bob's")
    await scene.keep(scene.turn(turn_id=taken))
    await scene.keep(scene.turn("q2"))

    assert await scene.write() == ["AccessDenied"]

    rows = await scene.memory.list_messages(
        scene.group.turn().conversation_id, scene.group.person("alice")
    )
    assert [row["content"] for row in rows] == ["Question q2", "A"]


async def test_the_words_of_someone_else_are_written_under_their_own_identity(
    scene: Scene,
) -> None:
    context = scene.group.turn("john", sender="alice")
    await scene.keep(scene.turn(context=context))
    await scene.write()

    rows = await scene.memory.list_messages(context.conversation_id)
    assert {(row["user_id"], row["actor_id"]) for row in rows} == {
        (scene.group.person("john"), scene.group.person("alice"))
    }


def _heard(context: AgentMemoryContext, *said: tuple[str, str]) -> LateWrite:
    records = [
        {"message_id": message, "author_id": context.actor_id, "author": "A", "content": text,
         "timestamp": 1, "is_bot": False, "ours": False, "root_id": None}
        for message, text in said
    ]  # fmt: skip
    place = {"p_chat_id": context.chat_id, "p_tenant_key": context.tenant_key}
    params = {**place, "p_records": json.dumps(records), "p_now": 1, "p_active_since": 0}
    write = late_write("continue_conversation", {**params, "p_keep": 9}, context)
    assert write
    return write


@pytest.mark.parametrize("known", [True, False], ids=["the memory knows", "it hears later"])
@pytest.mark.parametrize("recalled", ["before", "kept", "sent"])
async def test_a_question_taken_back_leaves_no_word_and_no_card(
    scene: Scene, connection: psycopg.Connection, recalled: str, known: bool
) -> None:
    cards = (StoredCard(0, f"A {WORD}", "pending"),)
    turn = scene.turn(content=f"Q {WORD}", cards=cards, tool_calls=({"name": "t", "result": WORD},))

    async def recall() -> None:
        place = {"p_message_id": turn.turn_id, "p_chat_id": turn.context.chat_id}
        if known:
            await scene.rpc.call("recall_message", place, None)
        await scene.jobs.take_back(turn.turn_id, turn.context.chat_id, keep=not known)

    if recalled == "before":
        await recall()
    kept = await scene.jobs.keep_turn(turn, unsent=True)
    if recalled == "kept":
        await recall()
    sent = await scene.sent(turn, content=f"A {WORD}")
    if recalled == "sent":
        await recall()
    if recalled != "before" or not known:
        assert tables_with(connection, WORD) == set()
        waiting = await scene.jobs.waiting(turn)
        assert waiting.turn
        assert waiting.turn["state"] == "cancelled"
    if recalled == "kept":
        assert sent["state"] == "cancelled"
    if recalled == "before" and not known:
        assert kept["state"] == "cancelled"
        assert (await scene.jobs.waiting(turn)).recalled

    await scene.write()

    assert await scene.rows() == []
    assert tables_with(connection, WORD) == set()
    due = [one.id for one in await Withdrawals(scene.rpc).take()]
    assert due == [f"{turn.turn_id}_0"]


@pytest.mark.parametrize("known", [True, False], ids=["the memory knows", "it hears later"])
async def test_an_answer_goes_with_the_message_it_was_made_from(
    scene: Scene, connection: psycopg.Connection, known: bool
) -> None:
    file = scene.group.message("file")
    cards = (StoredCard(0, f"It is {WORD}", "pending"),)
    turn = await scene.keep(scene.turn(cards=cards, given=(read_source_id(file),)))
    await scene.sent(turn, content=f"It is {WORD}")
    place = {"p_message_id": file, "p_chat_id": turn.context.chat_id}
    if known:
        await scene.rpc.call("recall_message", place, None)
    await scene.jobs.take_back(file, turn.context.chat_id, keep=not known)
    assert tables_with(connection, WORD) == set()

    again = await scene.jobs.keep_turn(scene.turn("q2", given=(read_source_id(file),)), unsent=True)
    assert again["state"] == ("pending" if known else "open")
    await scene.write()

    assert ("Question q", "received") in await scene.rows()
    assert tables_with(connection, WORD) == set()
    assert f"{turn.turn_id}_0" in {one.id for one in await Withdrawals(scene.rpc).take()}


async def test_of_what_was_heard_only_the_line_that_was_taken_back_goes(
    scene: Scene, connection: psycopg.Connection
) -> None:
    alice = scene.group.turn()
    gone, stays = scene.group.message("gone"), scene.group.message("stays")
    heard = _heard(alice, (gone, f"no {WORD}"), (stays, "yes"))
    await scene.jobs.keep_writes(alice, heard)
    await scene.jobs.keep_writes(alice, _heard(alice, (gone, f"no {WORD}")))

    await scene.jobs.take_back(gone, alice.chat_id, keep=True)
    await scene.jobs.keep_writes(alice, _heard(alice, (gone, f"no {WORD}")))

    assert tables_with(connection, WORD) == set()
    await scene.write()
    said = connection.execute("select content from chat_transcript").fetchall()
    assert said == [("yes",)]


@pytest.mark.parametrize("heard_first", [True, False])
async def test_a_line_that_repeats_a_card_goes_with_the_question_that_it_answered(
    scene: Scene, connection: psycopg.Connection, heard_first: bool
) -> None:
    """The next answer tells the conversation what was said before, from Feishu's list."""
    alice = scene.group.turn()
    turn = await scene.keep(scene.turn(cards=(StoredCard(0, f"A {WORD}", "pending"),)))
    await scene.sent(turn, content=f"A {WORD}")
    heard = _heard(alice, (f"{turn.turn_id}_0", f"A {WORD}"), (scene.group.message("m"), "yes"))
    if heard_first:
        await scene.jobs.keep_writes(alice, heard)
    await scene.jobs.take_back(turn.turn_id, alice.chat_id, keep=True)
    if heard_first:
        assert tables_with(connection, WORD) == set()
    else:
        await scene.jobs.keep_writes(alice, heard)

    await scene.write()

    said = connection.execute("select content from chat_transcript").fetchall()
    assert said == [("yes",)]
    assert tables_with(connection, WORD) == set()


@pytest.mark.parametrize("what", ["person", "conversation"])
async def test_what_waits_of_a_person_or_a_thread_can_be_exported_and_forgotten(
    scene: Scene, connection: psycopg.Connection, what: str
) -> None:
    alice = scene.group.turn()
    await scene.keep(scene.turn(content=WORD))
    await scene.jobs.keep_writes(alice, _heard(alice, (scene.group.message("m"), WORD)))
    queue = QueueOperations(scene.url)
    assert len(queue.export(scene.group.person("alice"))) == 2
    assert queue.export(scene.group.person("bob")) == []

    named = {"person": {"open_id": alice.actor_id}, "conversation": {
        "conversation_id": alice.conversation_id}}[what]  # fmt: skip
    gone = queue.forget(**named)

    assert (gone.turns, gone.jobs, gone.running) == (1, 0, 0)
    assert tables_with(connection, WORD) == set()


async def test_the_depth_of_the_queue_tells_what_waits_for_the_memory_apart(scene: Scene) -> None:
    await scene.keep(scene.turn())

    depth = QueueOperations(scene.url).depth()

    assert (depth.waiting, depth.oldest_waiting_s, depth.unstored) == (0, None, 1)
    assert depth.oldest_unstored_s is not None


async def test_a_queue_that_is_away_is_told_apart_from_a_memory_that_is(scene: Scene) -> None:
    pool = connection_pool("postgresql://nobody@127.0.0.1:1/none", size=1, timeout_s=0.5)
    async with pool:
        with pytest.raises(StoreQueueAway):
            await StoreJobs(pool, timeout_s=0.5).backlog()
