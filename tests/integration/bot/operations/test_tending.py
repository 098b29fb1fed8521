"""The background job of a conversation: in the queue beside its turns, and what it does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, cast

import psycopg
import pytest
from psycopg.rows import dict_row

from bot.agents.embeddings import Embedder
from bot.agents.summaries import Summarise, extractive_summary
from bot.answering.between_turns import TRIES, handle_tending, tend_conversation, tend_later
from bot.people.people_directory import People
from bot.queue.consumer import Lease
from bot.queue.inbox import Inbox, QueueUnavailable
from bot.queue.jobs import TENDING_TASK, Later
from bot.queue.operator_actions import Forgotten, QueueOperations
from bot.queue.table import TENDING_AT_ONCE
from bot.services import Services
from bot.settings import Settings
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.errors import StoreUnavailable
from memory.models import OpenTurn
from memory.rpc import Rpc
from memory.scope import AgentMemoryContext, own_context
from memory.store import MemoryStore
from tests.support.card_platform import CardPlatform
from tests.support.exchanges import deliver, exchange
from tests.support.people import Group
from tests.support.queue import Handle, idle_presence, job_table, until, working

pytestmark = pytest.mark.anyio

WORDS = "the launch is on 3 March"


@pytest.fixture
def group() -> Group:
    return Group()


# In the queue


async def _ignore(_: Lease) -> None:
    """A handler of jobs that a test does not look at."""


def told(tend: Handle, answer: Handle = _ignore) -> Handle:
    """Tending goes to `tend`, an event to `answer`."""

    async def handle(lease: Lease) -> None:
        await (tend if lease.job.task == TENDING_TASK else answer)(lease)

    return handle


def jobs(url: str) -> list[dict[str, Any]]:
    with psycopg.connect(url, row_factory=dict_row) as connection:
        return connection.execute("select * from feishu_bot.jobs order by id").fetchall()


def enqueue(url: str, context: AgentMemoryContext, key: str) -> None:
    inbox = Inbox(url)
    inbox.enqueue(key, {"text": key}, lock=context.conversation_id, received_ms=0)
    inbox.close()


async def test_a_conversation_waits_once_and_its_job_carries_ids_only(
    database_url: str, group: Group
) -> None:
    alice, bob = group.turn("alice"), group.turn("bob")
    async with job_table(database_url) as table:
        for context in (alice, alice, bob, alice):
            await table.queue_tending(context)

    waiting = jobs(database_url)
    assert [job["args"] for job in waiting] == [
        {
            "conversation_id": who.conversation_id,
            "user_id": who.user_id,
            "tenant_key": who.tenant_key,
        }
        for who in (alice, bob)
    ]
    assert all(job["priority"] < 0 for job in waiting)


async def test_the_job_of_a_forgotten_person_leaves_the_queue(
    database_url: str, group: Group
) -> None:
    async with job_table(database_url) as table:
        for who in ("alice", "bob"):
            await table.queue_tending(group.turn(who))

    gone = QueueOperations(database_url).forget(open_id=group.person("alice"))

    assert gone == Forgotten(jobs=1, turns=0, running=0)
    assert [job["args"]["user_id"] for job in jobs(database_url)] == [group.person("bob")]


async def test_a_turn_does_not_wait_for_the_tending_of_its_conversation(
    database_url: str, group: Group
) -> None:
    alice, begun, answered, over = group.turn(), asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def tend(_: Lease) -> None:
        begun.set()
        await over.wait()

    async def answer(_: Lease) -> None:
        answered.set()

    async with job_table(database_url) as table, working(database_url, told(tend, answer)):
        await table.queue_tending(alice)
        await begun.wait()
        await asyncio.to_thread(enqueue, database_url, alice, "while it is tended")
        await answered.wait()
        assert not over.is_set()
        over.set()


async def test_a_worker_full_of_tending_has_room_for_turns(database_url: str, group: Group) -> None:
    busy, answered, over = asyncio.Semaphore(0), asyncio.Event(), asyncio.Event()
    running = most = 0

    async def tend(_: Lease) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        busy.release()
        await over.wait()
        running -= 1

    async def answer(_: Lease) -> None:
        answered.set()

    contexts = [group.turn(thread=f"thread{number}") for number in range(12)]
    async with job_table(database_url) as table:
        for context in contexts:
            await table.queue_tending(context)
        async with working(database_url, told(tend, answer), concurrency=TENDING_AT_ONCE + 1):
            for _ in range(TENDING_AT_ONCE):
                await busy.acquire()
            await asyncio.to_thread(enqueue, database_url, contexts[0], "a question")
            await answered.wait()
            over.set()
            for _ in range(len(contexts) - TENDING_AT_ONCE):
                await busy.acquire()

    assert most == TENDING_AT_ONCE


async def test_a_job_is_tried_again_beside_the_next_one_of_its_conversation(
    database_url: str, group: Group
) -> None:
    alice, attempts, done = group.turn(), [], asyncio.Event()

    async with job_table(database_url) as table:

        async def tend(lease: Lease) -> None:
            attempts.append(lease.job.attempt)
            if len(attempts) == 1:
                await table.queue_tending(alice)  # a turn that ended meanwhile
                raise Later("away")
            if len(attempts) == 3:
                done.set()

        await table.queue_tending(alice)
        async with working(database_url, told(tend)):
            await done.wait()

    assert sorted(attempts) == [1, 1, 2]


async def test_the_job_of_a_dead_worker_is_taken_over_beside_the_next_one(
    database_url: str, group: Group
) -> None:
    async with job_table(database_url) as table:
        await table.queue_tending(group.turn())
        presence = idle_presence(database_url)
        await presence.begin()
        assert len(await table.take(presence.worker, 1)) == 1
        await table.queue_tending(group.turn())
        await presence.end()

        # Postgres frees the lock of a session a little after its end
        await until(lambda _: table.take_over([presence.worker]), database_url, 1)

    assert [job["status"] for job in jobs(database_url)] == ["waiting", "waiting"]


# What it does


@dataclass
class Worker:
    """What tending works with; everything else of `Services` it must not touch."""

    rpc: Rpc
    people: People
    settings: Settings
    summarise: Summarise = extractive_summary
    embedder: Embedder | None = None
    deferred: list[AgentMemoryContext] = field(default_factory=list)
    failure: Exception | None = None

    @property
    def services(self) -> Services:
        return cast(Services, self)

    async def queue_tending(self, context: AgentMemoryContext) -> None:
        if self.failure:
            raise self.failure
        self.deferred.append(context)


def configured(**given: Any) -> Settings:
    return Settings(**{"history_messages": 4, "summary_after_messages": 3, **given})


@pytest.fixture
async def worker(database_url: str) -> AsyncIterator[Worker]:
    pool = connection_pool(database_url, size=4)
    await pool.open()
    yield Worker(PostgresRpc(pool), People(CardPlatform()), configured())
    await pool.close()


class Failing:
    """A memory whose every answer is a failure."""

    def __init__(self, failure: Exception) -> None:
        self.failure = failure

    async def call(self, *_: object) -> Any:
        raise self.failure

    async def close(self) -> None:
        """Nothing is open."""


def summary(url: str) -> tuple[str, int] | None:
    with psycopg.connect(url) as connection:
        query = "select content, messages from agent_summaries"
        return connection.execute(query).fetchone()


async def test_it_folds_as_the_person_whose_memory_it_is(
    database_url: str, worker: Worker, group: Group
) -> None:
    asked_by_bob = group.turn("alice", sender="bob")
    for number in range(4):
        await exchange(MemoryStore(worker.rpc), asked_by_bob, f"{WORDS}, they say {number}", "ok")

    await handle_tending(worker.services, asked_by_bob, 1)

    stored = summary(database_url)
    assert stored is not None
    assert WORDS in stored[0]
    assert stored[1] == 5


async def test_what_is_not_due_is_left_and_so_is_everything_when_it_is_off(
    database_url: str, worker: Worker, group: Group
) -> None:
    alice = group.turn()
    await exchange(MemoryStore(worker.rpc), alice, WORDS, "ok")
    await tend_conversation(worker.services, alice)
    assert summary(database_url) is None

    for number in range(4):
        await exchange(MemoryStore(worker.rpc), alice, f"{WORDS} {number}", "ok")
    worker.settings = configured(summary_after_messages=0)
    await tend_conversation(worker.services, alice)
    assert summary(database_url) is None


async def test_a_long_thread_is_folded_to_its_window_and_the_names_stay(
    database_url: str, worker: Worker, group: Group
) -> None:
    alice, memory = group.turn(), MemoryStore(worker.rpc)
    for number in range(90):
        turn_id = group.message(f"q{number}")
        await memory.begin_turn(
            alice,
            turn_id=turn_id,
            content=f"thing {number} " + "happened " * 60,
            actor_name="Zoë Who" if number == 0 else "Alice",
        )
        await memory.record_reply(alice, turn_id=turn_id, cards=["ok"])
        await deliver(memory, alice, turn_id, ["ok"])

    await tend_conversation(worker.services, alice)

    stored = summary(database_url)
    assert stored is not None
    assert "Zoë Who" in stored[0]
    assert stored[1] == 180 - 3
    assert len(await memory.list_messages(alice.conversation_id)) == 180


@pytest.mark.parametrize("failure", [StoreUnavailable("away", code="08000"), KeyError("a bug")])
async def test_it_is_tried_a_few_times_and_then_given_up_quietly(
    worker: Worker, group: Group, failure: Exception
) -> None:
    alice = group.turn()
    worker.rpc = Failing(failure)

    for attempt in range(1, TRIES):
        with pytest.raises(Later):
            await handle_tending(worker.services, alice, attempt)
    await handle_tending(worker.services, alice, TRIES)


async def test_a_turn_asks_for_it_only_when_there_is_something_to_do(
    worker: Worker, group: Group
) -> None:
    alice = group.turn()
    for due in (False, True):
        await tend_later(worker.services, alice, OpenTurn("open", 1, fold_due=due))
    worker.failure = QueueUnavailable("gone")
    await tend_later(worker.services, alice, OpenTurn("open", 1, fold_due=True))

    assert worker.deferred == [alice]


def test_a_conversation_is_known_again_by_its_ids(group: Group) -> None:
    alice = group.turn("alice")

    assert own_context(alice.conversation_id, alice.user_id, alice.tenant_key) == alice
