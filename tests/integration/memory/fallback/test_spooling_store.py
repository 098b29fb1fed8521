"""The store of a worker whose memory goes away in the middle of a turn, over real databases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from memory.backends.postgres import PostgresRpc, connection_pool
from memory.errors import StoreUnavailable
from memory.fallback.breaker import BreakingRpc, CircuitBreaker
from memory.fallback.spool import Spool, SpoolState
from memory.fallback.store import SpoolingStore
from memory.fallback.watch import MemoryWatch
from memory.models import StoredCard
from memory.origins import MESSAGE, Origin
from memory.scope import AgentMemoryContext
from memory.store import MemoryStore
from memory.tables.read_messages import read_source
from memory.tables.withdrawals import Withdrawals
from tests.support.people import Group

pytestmark = pytest.mark.anyio


@dataclass
class Memory:
    """The memory's transport, as long as it is not `away`."""

    rpc: PostgresRpc
    away: bool = False

    async def call(
        self, function: str, params: Mapping[str, object], context: AgentMemoryContext | None
    ) -> Any:
        if self.away:
            raise StoreUnavailable("away")
        return await self.rpc.call(function, params, context)

    async def close(self) -> None: ...


class Counted(MemoryWatch):
    """What the watch is told."""

    def __init__(self) -> None:
        self.turns_spooled = 0
        self.turns_drained = 0
        self.empty = asyncio.Event()

    def spooled(self) -> None:
        self.turns_spooled += 1

    def drained(self, turns: int) -> None:
        self.turns_drained += turns

    def waits(self, state: SpoolState) -> None:
        if state.since is None:
            self.empty.set()


@pytest.fixture
async def memory(database_url: str) -> AsyncIterator[Memory]:
    pool = connection_pool(database_url, size=4)
    await pool.open()
    yield Memory(PostgresRpc(pool))
    await pool.close()


@pytest.fixture
def watch() -> Counted:
    return Counted()


@pytest.fixture
def guarded(memory: Memory) -> BreakingRpc:
    return BreakingRpc(memory, CircuitBreaker(probe_every_s=0.0))


@pytest.fixture
async def spool(database_url: str) -> AsyncIterator[Spool]:
    pool = connection_pool(database_url, size=4)
    await pool.open()
    yield Spool(pool)
    await pool.close()


@pytest.fixture
def store(guarded: BreakingRpc, spool: Spool, watch: Counted) -> SpoolingStore:
    return SpoolingStore(guarded, spool, lease_s=0.05, watch=watch)


@pytest.fixture
def group() -> Group:
    return Group()


async def back(store: SpoolingStore, memory: Memory, watch: Counted) -> None:
    """The memory answers again, and whoever tends the spool has written it."""
    memory.away = False
    stop = asyncio.Event()
    tending = asyncio.create_task(store.drain_forever(stop))
    async with asyncio.timeout(60):
        await watch.empty.wait()
    stop.set()
    await tending


@pytest.mark.parametrize("from_the_start", [True, False])
async def test_a_turn_goes_on_without_the_memory_and_is_written_when_it_is_back(
    store: SpoolingStore,
    memory: Memory,
    group: Group,
    watch: Counted,
    from_the_start: bool,
) -> None:
    context, turn_id = group.turn(), group.message("q")
    memory.away = from_the_start
    opened = await store.open_turn(context, turn_id=turn_id, content="Q")
    assert opened.degraded == from_the_start
    memory.away = True
    await store.record_reply(context, turn_id=turn_id, cards=["A"])
    sent = {"chunk": 0, "content": "A", "message_id": "om_a"}
    assert await store.mark_sent(context, turn_id=turn_id, **sent) == "sent"

    await back(store, memory, watch)

    rows = await MemoryStore(memory).list_messages(context.conversation_id)
    assert [(row["content"], row["status"]) for row in rows] == [("Q", "received"), ("A", "sent")]
    assert (watch.turns_spooled, watch.turns_drained) == (1, 1)


@pytest.mark.parametrize("from_the_start", [True, False])
async def test_a_question_taken_back_before_its_reply_is_stored_gets_none(
    store: SpoolingStore, memory: Memory, group: Group, watch: Counted, from_the_start: bool
) -> None:
    context, turn_id = group.turn(), group.message("q")
    memory.away = from_the_start
    await store.open_turn(context, turn_id=turn_id, content="Q")
    memory.away = True
    assert await store.take_back(turn_id, context.chat_id) is None

    stored = await store.record_reply(context, turn_id=turn_id, cards=["A"])
    again = await store.open_turn(context, turn_id=turn_id, content="Q")
    assert stored == ("cancelled", ())
    assert again.state == "cancelled"

    await back(store, memory, watch)
    opened = await store.open_turn(context, turn_id=turn_id, content="Q")
    assert opened.state == "cancelled"
    assert await MemoryStore(memory).list_messages(context.conversation_id) == ()


async def test_a_question_taken_back_while_its_answer_is_sent_is_not_remembered(
    store: SpoolingStore, memory: Memory, group: Group, watch: Counted
) -> None:
    context, turn_id = group.turn(), group.message("q")
    memory.away = True
    await store.open_turn(context, turn_id=turn_id, content="Q")
    _, cards = await store.record_reply(context, turn_id=turn_id, cards=["A"])
    assert cards == (StoredCard(0, "A", "pending"),)
    await store.take_back(turn_id, context.chat_id)

    sent = {"chunk": 0, "content": "A", "message_id": "om_a"}
    assert await store.mark_sent(context, turn_id=turn_id, **sent) == "cancelled"

    await back(store, memory, watch)
    assert await MemoryStore(memory).list_messages(context.conversation_id) == ()


@pytest.mark.parametrize("recalled", ["while away", "when back"])
async def test_an_answer_that_was_made_while_away_goes_with_what_it_was_made_from(
    store: SpoolingStore, memory: Memory, group: Group, watch: Counted, recalled: str
) -> None:
    context, turn_id, file = group.turn(), group.message("q"), group.message("file")
    memory.away = True
    await store.open_turn(context, turn_id=turn_id, content="Q")
    await store.record_reply(
        context, turn_id=turn_id, cards=["It is 912."], given=[read_source(file)]
    )
    sent = {"chunk": 0, "content": "It is 912.", "message_id": "om_a"}
    await store.mark_sent(context, turn_id=turn_id, **sent)
    if recalled == "while away":
        await store.take_back(file, context.chat_id)
    await back(store, memory, watch)
    if recalled == "when back":
        await store.take_back(file, context.chat_id)

    rows = await MemoryStore(memory).list_messages(context.conversation_id)
    assert [row["content"] for row in rows] == ["Q"], "the question is a person's own"
    assert [due.id for due in await Withdrawals(memory).take()] == ["om_a"]


@pytest.mark.parametrize("recalled", ["while away", "when back"])
async def test_a_second_answer_that_was_made_while_away_goes_with_the_question(
    store: SpoolingStore,
    memory: Memory,
    group: Group,
    watch: Counted,
    connection: psycopg.Connection,
    recalled: str,
) -> None:
    context, question = group.turn(), group.message("q")
    origin = Origin("again", question)
    for turn_id, came_from in ((question, MESSAGE), (origin.turn_id, origin)):
        memory.away = came_from == origin
        await store.open_turn(context, turn_id=turn_id, content="Q", origin=came_from)
        await store.record_reply(context, turn_id=turn_id, cards=["A"])
        sent = {"chunk": 0, "content": "A", "message_id": f"{turn_id}_card"}
        await store.mark_sent(context, turn_id=turn_id, **sent)
    if recalled == "while away":
        await store.take_back(question, context.chat_id)
    await back(store, memory, watch)
    if recalled == "when back":
        stored = "select origin, parent_id from agent_turns where id = %s"
        row = connection.execute(stored, [origin.turn_id]).fetchone()
        assert row == ("again", question)
        await store.take_back(question, context.chat_id)

    assert await MemoryStore(memory).list_messages(context.conversation_id) == ()
    due = {one.id for one in await Withdrawals(memory).take()}
    assert due == {f"{question}_card", f"{origin.turn_id}_card"}


async def test_the_memory_itself_hears_of_a_recall_when_it_is_there(
    store: SpoolingStore, group: Group
) -> None:
    context, turn_id = group.turn(), group.message("q")
    await store.open_turn(context, turn_id=turn_id, content="Q")

    assert await store.take_back(turn_id, context.chat_id) == "cancelled"
