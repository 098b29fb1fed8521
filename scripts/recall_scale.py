"""How long recall and storing take in a small and in a large table."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psycopg

from memory.postgres import PostgresRpc, connection_pool
from memory.recall import RecallScope
from memory.scope import AgentMemoryContext, memory_context
from memory.store import MemoryStore

_PER_CONVERSATION = 1000
_ASKED = 200
_STORED = 100

# Words of two characters, the common ones far more often, and a few Latin ones.
_WORDS = """
create function pg_temp.words(n integer) returns text language sql volatile as $$
  select string_agg(case when w % 17 = 0 then ' word' || w || ' '
                         else chr(19968 + w * 7) || chr(20000 + w * 11 % 9000) end, '')
  from (select (1 + 1500 * power(random(), 3))::integer as w from generate_series(1, n)) words
$$
"""
_FILL = """
with turns as (
  select 'om_' || i as id, %(conversations)s as c, 'feishu:oc_' || i %% %(conversations)s || ':main' as conv,
         'ou_' || i %% %(conversations)s as who, 'oc_' || i %% %(conversations)s as chat,
         timestamptz '2024-01-01' + i * interval '10 seconds' as at
  from generate_series(0, %(turns)s - 1) i
),
chats as (
  insert into agent_chats (id, user_id, chat_id, root_id)
  select distinct conv, who, chat, 'main' from turns
),
opened as (
  insert into agent_turns (id, conversation_id, user_id, actor_id, chat_id, state)
  select id, conv, who, who, chat, 'sent' from turns
)
insert into agent_messages (conversation_id, user_id, turn_id, chat_id, role, content, actor_id,
                            status, created_at)
select conv, who, id, chat, role, pg_temp.words(case role when 'user' then 12 else 28 end || ''), who,
       'sent', at
from turns, (values ('user'), ('assistant')) said (role)
"""


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds."""

    p50: float
    p95: float


def latency(times_ms: Sequence[float]) -> Latency:
    """The percentiles of at least one measurement."""
    ordered = sorted(times_ms)
    return Latency(
        round(statistics.median(ordered), 2), round(ordered[len(ordered) * 95 // 100], 2)
    )
