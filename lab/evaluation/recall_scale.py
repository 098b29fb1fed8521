"""How long recall and storing take in a small and in a large table, and what a message takes."""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

import psycopg

from lab.benchmark.machine import own_seconds
from lab.evaluation.recall_asking import RecallLatency, latency
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.recall.passages import recall_params
from memory.rpc import call_as
from memory.scope import AgentMemoryContext, memory_context
from memory.store import MemoryStore

_PER_CONVERSATION = 1_000
_BATCH = 50_000
_ASKED = 200
_TABLES = ("agent_chats", "agent_turns", "agent_messages", "turn_words")

# Ids as long as Feishu's; texts of n words of two Chinese characters, the common ones more often.
_MADE = """
create function pg_temp.id(kind text, n integer) returns text language sql immutable as $$
  select kind || '_' || md5(n::text)
$$;
create function pg_temp.words(n integer) returns text language sql volatile as $$
  select string_agg(chr(19968 + w * 7) || chr(20000 + w * 11), '，')
  from (select (1500 * power(random(), 3))::integer as w from generate_series(1, n)) picked
$$
"""
# Two talk more than all others: the first a tenth of all turns, the second a hundredth.
_WHO = "case when {c} = 1 then 0 when i % 10 = 0 then 0 when i % 100 = 1 then 1 else i % {c} end"
_CHATS = """
insert into agent_chats (id, user_id, chat_id, chat_type, root_id)
select 'feishu:' || pg_temp.id('oc', c) || ':main', pg_temp.id('ou', c), pg_temp.id('oc', c),
       'group', 'main'
from generate_series(0, {c} - 1) c
"""
# Turns of all conversations in turn, as they come in: no conversation lies together on disk.
_TURNS = """
insert into agent_turns (id, conversation_id, user_id, actor_id, chat_id, state, created_at)
select pg_temp.id('om', i), 'feishu:' || pg_temp.id('oc', c) || ':main', pg_temp.id('ou', c),
       pg_temp.id('ou', c), pg_temp.id('oc', c), 'sent',
       timestamptz '2024-01-01' + i * interval '10 seconds'
from generate_series({first}, {last}) i, lateral (select {who} as c) w
"""
_MESSAGES = """
insert into agent_messages (conversation_id, user_id, actor_id, turn_id, chat_id, role, content,
                            message_id, status, created_at)
select t.conversation_id, t.user_id, t.actor_id, t.id, t.chat_id, said.role,
       pg_temp.words(said.words + 0 * i), pg_temp.id(said.kind, i), 'sent', t.created_at
from generate_series({first}, {last}) i
join agent_turns t on t.id = pg_temp.id('om', i),
  (values ('user', 10, 'om'), ('assistant', 25, 'on')) said (role, words, kind)
"""
# As the trigger of the messages does it, for many at once.
_TERMS = """
insert into bot_private.turn_words (first_id, place, thread, asked_at, length, words)
select t.first_id, p.place, bot_private.recall_number(t.tenant_key, t.conversation_id),
       t.asked_at, cardinality(k.tokens), bot_private.recall_words(p.place, k.tokens)
from agent_turn_texts t,
  lateral (select bot_private.recall_tokens(t.content) as tokens offset 0) k,
  lateral (select bot_private.recall_number(t.tenant_key, t.chat_id) as place offset 0) p
where t.turn_id = any (array(select pg_temp.id('om', i) from generate_series({first}, {last}) i))
"""


@dataclass(frozen=True, slots=True)
class Scale:
    """What one operation takes with `messages` in the table.

    `cpu_ms` is the mean processor time of the database alone, which does not tell how busy the
    machine was.
    """

    messages: int
    operation: str
    ms: RecallLatency
    cpu_ms: float


@dataclass(frozen=True, slots=True)
class Stored:
    """Bytes that a message of `text` bytes takes in a table: its rows, and its indexes."""

    table: str
    text: float
    rows: float
    indexes: float


def measure_scale(
    database: Callable[[str], str], messages: int, report: Callable[[str], None]
) -> tuple[list[Scale], list[Stored]]:
    """Measures with 1,000 and with `messages` messages; `database` gives a migrated database.

    The second result is of the larger one.
    """
    results: list[Scale] = []
    stored: list[Stored] = []
    for size in (_PER_CONVERSATION, messages):
        url = database("scale")
        report(f"filling in {size:,} messages")
        conversations = fill(url, size, report)
        stored = measure_stored(url)
        results += asyncio.run(_measure(url, size, conversations))
    return results, stored


def fill(url: str, messages: int, report: Callable[[str], None]) -> int:
    """Stores and indexes `messages`; returns how many conversations of about 1,000 there are."""
    conversations = max(1, messages // _PER_CONVERSATION)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set session_replication_role = replica")  # no triggers, no checks
        connection.execute(_MADE)
        connection.execute(_CHATS.format(c=conversations).encode())
        who = _WHO.format(c=conversations)
        for first in range(0, messages // 2, _BATCH):
            last = min(first + _BATCH, messages // 2) - 1
            for statement in (_TURNS, _MESSAGES, _TERMS):
                connection.execute(statement.format(first=first, last=last, who=who).encode())
            report(f"  {2 * (last + 1):,} messages")
        connection.execute("vacuum analyze")
    return conversations


def measure_stored(url: str) -> list[Stored]:
    """What a message takes in each table that a filled database has."""
    with psycopg.connect(url) as connection:
        count, text = connection.execute(
            "select count(*), avg(octet_length(content))::float from agent_messages"
        ).fetchone() or (1, 0.0)
        rows = connection.execute(
            "select c.relname, pg_table_size(c.oid), pg_indexes_size(c.oid) from pg_class c"
            " where c.relname = any (%s)"
            " and c.relnamespace = any ('{public,bot_private}'::regnamespace[])"
            " order by pg_total_relation_size(c.oid) desc",
            [list(_TABLES)],
        ).fetchall()
    return [Stored(table, text, size / count, indexes / count) for table, size, indexes in rows]


async def _measure(url: str, size: int, conversations: int) -> list[Scale]:
    pool = connection_pool(url, size=1)
    await pool.open()
    rpc = PostgresRpc(pool)
    async with pool.connection() as connection:
        backend = connection.info.backend_pid
    probe = _Probe(rpc, conversations)

    async def timed(operation: str, calls: Iterable[Awaitable[None]]) -> Scale:
        return Scale(size, operation, *await _timed(calls, backend))

    results = []
    if conversations > 1:
        turns = size // 2
        results = [
            await timed(f"recall, {turns // 10:,} turns of one", map(probe.recall, [0] * _ASKED)),
            await timed(f"recall, {turns // 100:,} turns of one", map(probe.recall, [1] * _ASKED)),
        ]
    last = conversations - 1
    results += [
        await timed("recall, one conversation", map(probe.recall, [last] * _ASKED)),
        await timed("recall, any conversation", map(probe.recall, probe.anybody())),
        await timed("open a turn and record its reply", map(probe.save, probe.anybody())),
    ]
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("alter table agent_messages disable trigger user")
    saved = "open a turn and record its reply, not indexed"
    results.append(await timed(saved, map(probe.save, probe.anybody())))
    await rpc.close()
    return results


class _Probe:
    """What is timed: each call is one operation as some person."""

    def __init__(self, rpc: PostgresRpc, conversations: int) -> None:
        self._rpc = rpc
        self._store = MemoryStore(rpc)
        self._conversations = conversations
        self._chance = random.Random(1)  # noqa: S311  (who asks what is no secret)

    def anybody(self) -> list[int]:
        """People with about 1,000 messages each."""
        first = min(2, self._conversations - 1)
        return [self._chance.randrange(first, self._conversations) for _ in range(_ASKED)]

    async def recall(self, person: int) -> None:
        who = _person(person)
        params = recall_params(who, self._words(7), now=datetime.now(UTC))
        await call_as(self._rpc, "recall", who, **params)

    async def save(self, person: int) -> None:
        """Opens a turn, which loads its history too, and records its answer: two round trips."""
        who, turn = _person(person), f"om_saved_{self._chance.random()}"
        await self._store.open_turn(who, turn_id=turn, content=self._words(10))
        await self._store.record_reply(who, turn_id=turn, cards=[self._words(25)])

    def _words(self, n: int) -> str:
        picked = [int(1500 * self._chance.random() ** 3) for _ in range(n)]
        return "，".join(chr(19968 + w * 7) + chr(20000 + w * 11) for w in picked)


def _person(number: int) -> AgentMemoryContext:
    made = hashlib.md5(str(number).encode(), usedforsecurity=False).hexdigest()
    return memory_context(
        chat_id=f"oc_{made}",
        root="main",
        subject=f"ou_{made}",
        actor=f"ou_{made}",
        chat_type="group",
    )


async def _timed(
    operations: Iterable[Awaitable[None]], backend: int
) -> tuple[RecallLatency, float]:
    times = []
    used = own_seconds(backend)
    for operation in operations:
        started = time.perf_counter()
        await operation
        times.append((time.perf_counter() - started) * 1000)
    return latency(times), round((own_seconds(backend) - used) * 1000 / len(times), 2)
