"""The store of a worker whose memory goes away in the middle of a turn, over real databases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict, dataclass, field
from types import SimpleNamespace
from typing import cast

import psycopg
import pytest

from bot.queue.jobs import STORE_TASK, Job, Later
from bot.queue.table import JobTable
from bot.services import Services
from bot.worker import StoreRefused, write_missed
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.errors import StoreUnavailable
from memory.fallback import store as outage_store
from memory.fallback.breaker import BreakingRpc, CircuitBreaker, MemoryWatch
from memory.fallback.store import OutageStore
from memory.fallback.store_jobs import MissedTurn, StoreJobs
from memory.models import MESSAGE_ORIGIN, Origin, StoredCard
from memory.scope import AgentMemoryContext
from memory.store import MemoryStore
from memory.tables.cards import Withdrawals
from tests.support.people import Group
from tests.support.queue import fetch, until
from tests.support.store_jobs import Memory, write_waiting

pytestmark = pytest.mark.anyio


@dataclass
class Counted(MemoryWatch):
    """Counts what the watch is told."""

    turns_kept: int = 0
    backlog: list[int] = field(default_factory=list)

    def count_kept_turn(self) -> None:
        self.turns_kept += 1

    def waiting(self, turns: int, oldest_s: float) -> None:
        self.backlog.append(turns)


@dataclass
class Outage:
    """A memory, the store over it and the jobs beside it."""

    memory: Memory
    store: OutageStore
    jobs: StoreJobs
    watch: Counted
    group: Group
    write: Callable[[], Awaitable[list[str]]]

    async def sent(self, context: AgentMemoryContext, turn_id: str, text: str = "A") -> str:
        sent = {"chunk": 0, "content": text, "message_id": f"{turn_id}_card"}
        state, _ = await self.store.mark_sent(context, turn_id=turn_id, **sent)  # type: ignore[arg-type]
        return state

    async def rows(self) -> list[tuple[str, str]]:
        found = await MemoryStore(self.memory).list_messages(self.group.turn().conversation_id)
        return [(row["content"], row["status"]) for row in found]


@pytest.fixture
async def outage(
    database_url: str, rpc: PostgresRpc, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Outage]:
    monkeypatch.setattr(outage_store, "_BEHIND_S", 0.3)
    async with connection_pool(database_url, size=4) as pool:
        jobs, watch, memory = StoreJobs(pool), Counted(), Memory(rpc)
        guarded = BreakingRpc(memory, CircuitBreaker(probe_every_s=0.0))
        store = OutageStore(guarded, jobs, watch=watch)

        async def write() -> list[str]:
            return await write_waiting(database_url, jobs, JobTable(pool), rpc)

        yield Outage(memory, store, jobs, watch, Group(), write)


@pytest.mark.parametrize("goes_away", ["before", "after the opening", "after the reply"])
async def test_a_turn_goes_on_without_the_memory_and_is_written_when_it_is_back(
    outage: Outage, goes_away: str
) -> None:
    context, turn_id = outage.group.turn(), outage.group.message("q")
    outage.memory.away = goes_away == "before"
    opened = await outage.store.begin_turn(context, turn_id=turn_id, content="Q")
    assert opened.degraded == (goes_away == "before")
    outage.memory.away = goes_away != "after the reply"
    await outage.store.record_reply(context, turn_id=turn_id, cards=["A"])
    outage.memory.away = True
    assert await outage.sent(context, turn_id) == "sent"
    assert (await outage.jobs.backlog()).turns == 1

    outage.memory.away = False
    assert await outage.write() == []

    assert await outage.rows() == [("Q", "received"), ("A", "sent")]
    assert outage.watch.turns_kept == 1


async def test_after_a_crash_the_kept_reply_is_found_and_no_other_is_stored(
    outage: Outage,
) -> None:
    context, turn_id = outage.group.turn(), outage.group.message("q")
    outage.memory.away = True
    await outage.store.begin_turn(context, turn_id=turn_id, content="Q")
    shown = {"language": "en", "without_memory": True}
    await outage.store.record_reply(context, turn_id=turn_id, cards=["A"], visible_card=shown)
    crashed = OutageStore(outage.store._guarded, outage.jobs)

    for is_away in (True, False):
        outage.memory.away = is_away
        opened = await crashed.begin_turn(context, turn_id=turn_id, content="Q")
        assert (opened.state, opened.reply) == ("pending", (StoredCard(0, "A", "pending"),))
        assert (opened.degraded, opened.shown) == (True, shown)
    again = await crashed.record_reply(context, turn_id=turn_id, cards=["another"])

    assert again == ("pending", (StoredCard(0, "A", "pending"),))


async def test_the_next_turn_of_a_thread_waits_for_the_ones_before_it(
    outage: Outage, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = outage.group.turn()
    outage.memory.away = True
    for name in ("q1", "q2"):
        turn_id = outage.group.message(name)
        await outage.store.begin_turn(context, turn_id=turn_id, content=name)
        await outage.store.record_reply(context, turn_id=turn_id, cards=["A"])
        await outage.sent(context, turn_id)
    outage.memory.away = False
    outage.store._breaker.note_success()

    behind = await outage.store.begin_turn(
        context, turn_id=outage.group.message("q3"), content="q3"
    )
    assert behind.degraded
    monkeypatch.setattr(outage_store, "_BEHIND_S", 60.0)  # however busy the machine is
    opening = asyncio.create_task(
        outage.store.begin_turn(context, turn_id=outage.group.message("q4"), content="q4")
    )
    await outage.write()
    opened = await opening

    assert not opened.degraded
    assert [message.content for message in opened.history] == ["q1", "A", "q2", "A", "q4"]


async def test_a_turn_that_was_written_meanwhile_goes_on_in_the_memory(outage: Outage) -> None:
    context, turn_id = outage.group.turn(), outage.group.message("q")
    outage.memory.away = True
    await outage.store.begin_turn(context, turn_id=turn_id, content="Q")
    await outage.store.record_reply(context, turn_id=turn_id, cards=["A"])
    outage.memory.away = False
    outage.store._breaker.note_success()
    await outage.write()

    assert await outage.sent(context, turn_id, "A!") == "sent"
    assert await outage.rows() == [("Q", "received"), ("A!", "sent")]


@pytest.mark.parametrize("from_the_start", [True, False])
async def test_a_question_taken_back_before_its_reply_is_stored_gets_none(
    outage: Outage, from_the_start: bool
) -> None:
    context, turn_id = outage.group.turn(), outage.group.message("q")
    outage.memory.away = from_the_start
    await outage.store.begin_turn(context, turn_id=turn_id, content="Q")
    outage.memory.away = True
    assert await outage.store.take_back(turn_id, context.chat_id) is None

    state, _ = await outage.store.record_reply(context, turn_id=turn_id, cards=["A"])
    again = await outage.store.begin_turn(context, turn_id=turn_id, content="Q")
    assert (state, again.state) == ("cancelled", "cancelled")

    outage.memory.away = False
    await outage.write()
    opened = await MemoryStore(outage.memory).begin_turn(context, turn_id=turn_id, content="Q")
    assert opened.state == "cancelled"
    assert await outage.rows() == []


async def test_a_card_sent_after_its_question_was_taken_back_is_withdrawn(outage: Outage) -> None:
    context, turn_id = outage.group.turn(), outage.group.message("q")
    await outage.store.begin_turn(context, turn_id=turn_id, content="Q")
    await outage.store.record_reply(context, turn_id=turn_id, cards=["A"])
    outage.memory.away = True
    await outage.store.take_back(turn_id, context.chat_id)

    assert await outage.sent(context, turn_id) == "cancelled"

    outage.memory.away = False
    await outage.write()
    assert await outage.rows() == []
    assert f"{turn_id}_card" in {due.id for due in await Withdrawals(outage.memory).take()}


@pytest.mark.parametrize("recalled", ["while away", "when back"])
async def test_a_second_answer_that_was_made_while_away_goes_with_the_question(
    outage: Outage, connection: psycopg.Connection, recalled: str
) -> None:
    context, question = outage.group.turn(), outage.group.message("q")
    origin = Origin("again", question)
    for turn_id, came_from in ((question, MESSAGE_ORIGIN), (origin.turn_id, origin)):
        outage.memory.away = came_from == origin
        await outage.store.begin_turn(context, turn_id=turn_id, content="Q", origin=came_from)
        await outage.store.record_reply(context, turn_id=turn_id, cards=["A"])
        await outage.sent(context, turn_id)
    if recalled == "while away":
        await outage.store.take_back(question, context.chat_id)
    outage.memory.away = False
    outage.store._breaker.note_success()
    await outage.write()
    if recalled == "when back":
        stored = "select origin, parent_id from agent_turns where id = %s"
        row = connection.execute(stored, [origin.turn_id]).fetchone()
        assert row == ("again", question)
        await outage.store.take_back(question, context.chat_id)

    assert await outage.rows() == []
    due = {one.id for one in await Withdrawals(outage.memory).take()}
    assert due == {f"{question}_card", f"{origin.turn_id}_card"}


async def test_a_turn_of_which_nothing_is_known_is_not_kept(outage: Outage) -> None:
    outage.memory.away = True

    with pytest.raises(StoreUnavailable):
        await outage.sent(outage.group.turn(), outage.group.message("q"))
    assert (await outage.jobs.backlog()).turns == 0


@pytest.mark.parametrize(
    ("untaken", "is_there", "outcome"),
    [(0, True, Later), (20, False, Later), (20, True, StoreRefused)],
)
async def test_a_job_that_a_memory_which_answers_never_takes_is_given_up(
    outage: Outage, untaken: int, is_there: bool, outcome: type[Exception]
) -> None:
    outage.memory.refuses, outage.memory.away = "restore_turn", not is_there
    turn = MissedTurn(outage.group.turn(), outage.group.message("q"), "Q", "2026-01-02T03:04:05Z")
    args = {**asdict(turn.context), "turn": turn.row(), "writes": [], "untaken": untaken}
    services = cast(Services, SimpleNamespace(store=outage.store))

    with pytest.raises(outcome) as raised:
        await write_missed(services, Job(1, STORE_TASK, args, None, attempt=50))
    if isinstance(raised.value, Later):
        assert raised.value.note == {"untaken": untaken + is_there}


async def sleeping(url: str) -> int:
    """How many jobs wait for the time of their next attempt."""
    [count] = fetch(url, "select count(*) from feishu_bot.jobs where scheduled_at > now()")
    return int(count)


async def test_jobs_sleep_until_the_memory_is_back_and_then_run_at_once(
    outage: Outage,
    database_url: str,
    connection: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outage_store, "_ROUND_S", 0.05)
    monkeypatch.setattr(outage_store, "_WAKE_EVERY_S", 0.2)
    context, turn_id, stop = outage.group.turn(), outage.group.message("q"), asyncio.Event()
    outage.memory.away = True
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            await outage.store.ping()
    await outage.store.begin_turn(context, turn_id=turn_id, content="Q")
    await outage.store.record_reply(context, turn_id=turn_id, cards=["A"])
    connection.execute("update feishu_bot.jobs set scheduled_at = now() + interval '1 hour'")

    tending = asyncio.create_task(outage.store.tend(stop))
    await asyncio.sleep(0.3)
    assert await sleeping(database_url) == 1
    outage.memory.away = False
    await until(sleeping, database_url, 0)
    connection.execute("update feishu_bot.jobs set scheduled_at = now() + interval '1 hour'")
    await until(sleeping, database_url, 0)  # one that failed again by itself
    stop.set()
    await tending

    assert set(outage.watch.backlog) == {1}
