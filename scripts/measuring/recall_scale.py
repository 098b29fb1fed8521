"""How long recall and storing take in a small and in a large table."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import psycopg

from memory.backends.postgres import PostgresRpc, connection_pool
from memory.recall.passages import recall_params
from memory.rpc import call_as
from memory.scope import AgentMemoryContext, memory_context
from memory.store import MemoryStore

_PER_CONVERSATION = 1_000
_BATCH = 50_000
_ASKED = 200

# A text of n words of two Chinese characters, the common ones far more often.
_WORDS = """
create function pg_temp.words(n integer) returns text language sql volatile as $$
  select string_agg(chr(19968 + w * 7) || chr(20000 + w * 11), '，')
  from (select (1500 * power(random(), 3))::integer as w from generate_series(1, n)) picked
$$
"""
_CHATS = """
insert into agent_chats (id, user_id, chat_id, root_id)
select 'feishu:oc_' || c || ':main', 'ou_' || c, 'oc_' || c, 'main'
from generate_series(0, %s::integer - 1) c
"""
# Turns of all conversations in turn, as they come in: no conversation lies together on disk.
_TURNS = """
insert into agent_turns (id, conversation_id, user_id, actor_id, chat_id, state, created_at)
select 'om_' || i, 'feishu:oc_' || c || ':main', 'ou_' || c, 'ou_' || c, 'oc_' || c, 'sent',
       timestamptz '2024-01-01' + i * interval '10 seconds'
from generate_series(%(first)s::integer, %(last)s::integer) i, mod(i, %(c)s::integer) c
"""
_MESSAGES = """
insert into agent_messages (conversation_id, user_id, actor_id, turn_id, chat_id, role, content,
                            status, created_at)
select t.conversation_id, t.user_id, t.actor_id, t.id, t.chat_id, said.role,
       pg_temp.words(said.words + 0 * i), 'sent', t.created_at
from generate_series(%(first)s::integer, %(last)s::integer) i
join agent_turns t on t.id = 'om_' || i, (values ('user', 10), ('assistant', 25)) said (role, words)
"""


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds."""

    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class Scale:
    """What one operation takes with `messages` in the table, 1,000 of them in the conversation."""

    messages: int
    operation: str
    ms: Latency


def latency(times_ms: Sequence[float]) -> Latency:
    """The percentiles of at least one measurement."""
    ordered = sorted(times_ms)
    p50, p95 = statistics.median(ordered), ordered[len(ordered) * 95 // 100]
    return Latency(round(p50, 2), round(p95, 2))


def measure_scale(
    database: Callable[[str], str], messages: int, report: Callable[[str], None]
) -> list[Scale]:
    """Measures with 1,000 and with `messages` messages; `database` gives a migrated database."""
    results = []
    for size in (_PER_CONVERSATION, messages):
        url = database("scale")
        report(f"filling in {size:,} messages")
        conversations = fill(url, size, report)
        results += asyncio.run(_measure(url, size, conversations))
    return results


def fill(url: str, messages: int, report: Callable[[str], None]) -> int:
    """Stores and indexes `messages`; returns the number of conversations, 1,000 messages each."""
    conversations = max(1, messages // _PER_CONVERSATION)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_WORDS)
        connection.execute(_CHATS.encode(), [conversations])
        for first in range(0, messages // 2, _BATCH):
            last = min(first + _BATCH, messages // 2) - 1
            span = {"c": conversations, "first": first, "last": last}
            connection.execute(_TURNS.encode(), span)
            connection.execute(_MESSAGES.encode(), span)
            report(f"  {2 * (last + 1):,} messages")
        connection.execute("vacuum analyze")
    return conversations


async def _measure(url: str, size: int, conversations: int) -> list[Scale]:
    pool = connection_pool(url, size=1)
    await pool.open()
    rpc = PostgresRpc(pool)
    probe = _Probe(rpc, conversations)
    results = [
        Scale(
            size,
            "recall, one conversation",
            await _timed(probe.recall(one) for one in [0] * _ASKED),
        ),
        Scale(size, "recall, any conversation", await _timed(map(probe.recall, probe.anybody()))),
        Scale(
            size, "open a turn and record its reply", await _timed(map(probe.save, probe.anybody()))
        ),
    ]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("alter table agent_messages disable trigger user")
    saved = await _timed(map(probe.save, probe.anybody()))
    await rpc.close()
    return [*results, Scale(size, "open a turn and record its reply, not indexed", saved)]


class _Probe:
    """What is timed: each call is one operation as some person."""

    def __init__(self, rpc: PostgresRpc, conversations: int) -> None:
        self._rpc = rpc
        self._store = MemoryStore(rpc)
        self._conversations = conversations
        self._chance = random.Random(1)  # noqa: S311  (who asks what is no secret)

    def anybody(self) -> list[int]:
        return [self._chance.randrange(self._conversations) for _ in range(_ASKED)]

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
    who = f"ou_{number}"
    return memory_context(chat_id=f"oc_{number}", root="main", subject=who, actor=who)


async def _timed(operations: Iterable[Awaitable[None]]) -> Latency:
    times = []
    for operation in operations:
        started = time.perf_counter()
        await operation
        times.append((time.perf_counter() - started) * 1000)
    return latency(times)
