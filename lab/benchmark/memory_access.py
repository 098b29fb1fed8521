"""Loading and saving a turn with little and with much in the memory, taken alternately."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import psycopg

from lab.benchmark.figures import Figure, percentile
from lab.benchmark.setting import Setting
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.scope import AgentMemoryContext, memory_context
from memory.store import MemoryStore

SMALL = 1_000
LONG_THREAD = 100_000
_BATCH = 50_000
_IN_A_THREAD = 20  # messages; each thread has one person
_LONG = "long"
_numbers = itertools.count(1)

Progress = Callable[[str], None]

_FILL_CHATS = """
insert into agent_chats (id, user_id, chat_id, root_id, title)
select 'feishu:oc_' || n || ':om_' || n, 'ou_' || n, 'oc_' || n, 'om_' || n, 'filled'
from generate_series(%(first)s::int, %(last)s::int) n"""
_FILL_TURNS = """
insert into agent_turns (id, conversation_id, user_id, actor_id, chat_id, state)
select 'om_' || n || '_' || m, 'feishu:oc_' || n || ':om_' || n, 'ou_' || n, 'ou_' || n,
       'oc_' || n, 'sent'
from generate_series(%(first)s::int, %(last)s::int) n, generate_series(1, %(each)s / 2) m"""
_FILL_MESSAGES = """
insert into agent_messages (conversation_id, user_id, turn_id, chat_id, role, content, actor_id,
                            actor_name, message_id, status)
select 'feishu:oc_' || n || ':om_' || n, 'ou_' || n, 'om_' || n || '_' || m, 'oc_' || n, role,
       'message ' || m || ' of person ' || n || repeat(' about the plan', 1 + m %% 12), 'ou_' || n,
       'Person ' || n, 'om_' || n || '_' || m || '_' || role,
       case role when 'user' then 'received' else 'sent' end
from generate_series(%(first)s::int, %(last)s::int) n, generate_series(1, %(each)s / 2) m,
     (values ('user'), ('assistant')) roles(role)
order by n, m, role desc"""


@dataclass
class _Times:
    loads: list[float] = field(default_factory=list)
    saves: list[float] = field(default_factory=list)


async def measure_memory(setting: Setting, progress: Progress) -> list[Figure]:
    """Two databases of one server, sample by sample in turn, so that noise meets both alike."""
    samples = 60 if setting.quick else 300
    async with AsyncExitStack() as stack:
        small = stack.enter_context(setting.database("bench_small"))
        large = stack.enter_context(setting.database("bench_large"))
        _fill(small, SMALL, progress)
        _fill(large, setting.messages, progress)
        _fill_long_thread(large, LONG_THREAD, progress)
        stores = {name: await _store(stack, url) for name, url in _named(small, large)}
        progress(f"loading and saving {samples} turns in each, in turn")
        times = {name: _Times() for name in (*stores, _LONG)}
        for number in range(samples + 10):
            for name in random.sample(sorted(times), len(times)):  # no order favours one
                filled = 0 if name == _LONG else 1 + number % (SMALL // _IN_A_THREAD)
                store = stores["large" if name == _LONG else name]
                await _turn(store, _person(filled), times[name])
    return _figures(setting.messages, {name: _without_first(t) for name, t in times.items()})


def _named(small: str, large: str) -> tuple[tuple[str, str], ...]:
    return ("small", small), ("large", large)


async def _store(stack: AsyncExitStack, url: str) -> MemoryStore:
    pool = connection_pool(url, size=1)
    await pool.open()
    rpc = PostgresRpc(pool)
    stack.push_async_callback(rpc.close)
    return MemoryStore(rpc)


def _person(number: int) -> AgentMemoryContext:
    """The thread `number` as the fill made it."""
    person = f"ou_{number}"
    return memory_context(chat_id=f"oc_{number}", root=f"om_{number}", subject=person, actor=person)


async def _turn(store: MemoryStore, context: AgentMemoryContext, times: _Times) -> None:
    """One question and its answer, as the worker stores them."""
    turn_id = f"om_bench_{next(_numbers)}"
    started = time.perf_counter()
    question = "what did we say about the plan?"
    await store.open_turn(context, turn_id=turn_id, content=question, fold_after=10)
    loaded = time.perf_counter()
    await store.record_reply(context, turn_id=turn_id, cards=["We agreed on Thursday."])
    await store.mark_sent(
        context,
        turn_id=turn_id,
        chunk=0,
        content="We agreed on Thursday.",
        message_id=f"{turn_id}_card",
    )
    times.loads.append((loaded - started) * 1000)
    times.saves.append((time.perf_counter() - loaded) * 1000)


def _without_first(times: _Times) -> _Times:
    """Without the ten turns that warmed connection, plans and caches."""
    return _Times(times.loads[10:], times.saves[10:])


def _figures(messages: int, times: dict[str, _Times]) -> list[Figure]:
    def p50(name: str, what: str) -> float:
        return percentile(getattr(times[name], what), 0.5)

    much = f"{messages:,} messages"
    ratio = p50("large", "loads") / p50("small", "loads")
    saving = p50("large", "saves") / p50("small", "saves")
    long = p50(_LONG, "loads") / p50("small", "loads")
    return [
        Figure(f"load, {SMALL:,} messages, p50", p50("small", "loads"), "ms"),
        Figure(f"load, {much}, p50", p50("large", "loads"), "ms"),
        Figure(f"load, {much} ÷ {SMALL:,}", ratio, "×", 1.5),
        Figure(f"load, thread of {LONG_THREAD:,}, p50", p50(_LONG, "loads"), "ms"),
        Figure(f"load, thread of {LONG_THREAD:,} ÷ {SMALL:,}", long, "×", 1.5),
        Figure(f"save, {SMALL:,} messages, p50", p50("small", "saves"), "ms", note="two trips"),
        Figure(f"save, {much}, p50", p50("large", "saves"), "ms"),
        Figure(f"save, {much} ÷ {SMALL:,}", saving, "×"),
    ]


def _fill(url: str, messages: int, progress: Progress) -> None:
    """`messages` in threads of 20, one person each."""
    threads, at_once = messages // _IN_A_THREAD, _BATCH // _IN_A_THREAD
    with psycopg.connect(url, autocommit=True) as connection:
        _without_triggers(connection)
        for first in range(1, threads + 1, at_once):
            last = min(first + at_once - 1, threads)
            _insert(connection, first, last, _IN_A_THREAD)
            progress(f"filled {last * _IN_A_THREAD:,} of {messages:,} messages")
        connection.execute("vacuum analyze")


def _fill_long_thread(url: str, messages: int, progress: Progress) -> None:
    """One thread of one person, number 0."""
    with psycopg.connect(url, autocommit=True) as connection:
        _without_triggers(connection)
        _insert(connection, 0, 0, messages)
        connection.execute("vacuum analyze")
    progress(f"filled a thread of {messages:,} messages")


def _without_triggers(connection: psycopg.Connection) -> None:
    """The rows fit together by construction; checking each would take minutes."""
    connection.execute("set session_replication_role = replica")


def _insert(connection: psycopg.Connection, first: int, last: int, each: int) -> None:
    for statement in (_FILL_CHATS, _FILL_TURNS, _FILL_MESSAGES):
        connection.execute(statement, {"first": first, "last": last, "each": each})
