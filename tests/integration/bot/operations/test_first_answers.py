"""Before anybody asks, Postgres has planned what a turn calls, and nothing is left of that."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

import polib
import psycopg
import pytest

from bot.feishu.errors import Unreachable
from bot.feishu.models import BotInfo
from bot.operations.maintenance import prepare_first_answer, rehearse_turns
from bot.outbox import texts
from bot.people.people_directory import BotIdentity
from bot.settings import Settings
from bot.text import languages
from memory.backends.pool import Pool
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.recall.passages import recall_at_once
from memory.scope import memory_context
from memory.store import MemoryStore

pytestmark = pytest.mark.anyio

_PLANS = "select count(*) from pg_backend_memory_contexts where name = 'CachedPlan'"
_TABLES = (
    "select format('%I.%I', schemaname, tablename) from pg_tables"
    " where schemaname in ('public', 'bot_private', 'feishu_bot')"
)


async def plans_of_a_turn(pool: Pool) -> int:
    """How many plans the first turn of somebody makes on this connection."""
    before = await _plans(pool)
    store = MemoryStore(PostgresRpc(pool))
    context = memory_context(
        chat_id="oc_1", root="om_1", subject="ou_1", actor="ou_1", chat_type="group"
    )
    now = datetime.now(UTC)
    await store.begin_turn(
        context,
        turn_id="om_1",
        content="Where is the key?",
        recent_s=3600,
        recall=recall_at_once(context, "Where is the key?", now=now, k=5),
        elsewhere=True,
    )
    await store.record_reply(context, turn_id="om_1", cards=["With Ann."])
    await store.mark_sent(context, turn_id="om_1", chunk=0, content="With Ann.", message_id="om_2")
    return await _plans(pool) - before


async def _plans(pool: Pool) -> int:
    async with pool.connection() as connection:
        row = await (await connection.execute(_PLANS)).fetchone()
    assert row
    return int(row[0])


def rows(connection: psycopg.Connection) -> dict[str, int]:
    """How many there are in each table."""
    counts = {}
    for (table,) in connection.execute(_TABLES).fetchall():
        found = connection.execute(f"select count(*) from {table}".encode()).fetchone()
        counts[table] = found[0] if found else 0
    return counts


async def test_the_first_turn_after_it_plans_next_to_nothing(database_url: str) -> None:
    planned = {}
    for rehearsed in (False, True):
        async with connection_pool(database_url, size=1) as pool:
            if rehearsed:
                await rehearse_turns(Settings(), pool)
            planned[rehearsed] = await plans_of_a_turn(pool)

    assert planned[False] > 50
    assert planned[True] < planned[False] / 10, planned


async def test_nothing_of_it_stays(database_url: str, connection: psycopg.Connection) -> None:
    before = rows(connection)
    async with connection_pool(database_url, size=1) as pool:
        await rehearse_turns(Settings(), pool)
        plans = await _plans(pool)
        async with pool.connection() as taken:
            row = await (await taken.execute("select current_user::text")).fetchone()

    assert plans > 50, "it was played"
    assert row == ("postgres",)
    assert rows(connection) == before


async def test_a_database_that_refuses_it_harms_nobody(
    database_url: str, connection: psycopg.Connection
) -> None:
    connection.execute("alter function public.begin_turn rename to begun_turn")
    async with connection_pool(database_url, size=1) as pool:
        await rehearse_turns(Settings(), pool)
        async with pool.connection() as taken:
            assert await (await taken.execute("select 1")).fetchone() == (1,)


async def test_where_the_memory_is_elsewhere_nothing_is_played(database_url: str) -> None:
    async with connection_pool(database_url, size=1) as pool:
        await rehearse_turns(Settings(supabase_url="http://127.0.0.1:1"), pool)
        assert await _plans(pool) == 0


@dataclass
class _Platform:
    is_away: bool
    asked: int = 0

    async def bot_info(self) -> BotInfo:
        self.asked += 1
        if self.is_away:
            raise Unreachable("away")
        return BotInfo("ou_bot", "Memo")


@dataclass
class _Services:
    own_person: BotIdentity


@pytest.mark.parametrize("is_away", [False, True])
async def test_the_first_question_reads_no_texts_and_asks_not_who_the_bot_is(
    monkeypatch: pytest.MonkeyPatch, is_away: bool
) -> None:
    platform = _Platform(is_away)
    services = _Services(BotIdentity(cast(Any, platform)))
    languages._translations.cache_clear()
    await prepare_first_answer(cast(Any, services))
    monkeypatch.setattr(polib, "pofile", None)

    assert texts.say("again", "zh") != texts.say("again", "en")
    assert platform.asked == 1
    platform.is_away = False
    assert (await services.own_person.look_up()).open_id == "ou_bot"
    assert platform.asked == 1 + is_away
