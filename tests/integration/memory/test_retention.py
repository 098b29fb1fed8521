"""Retention covers what waits in the queue, for the memory too, and chats that the bot has left."""

from __future__ import annotations

import psycopg
import pytest

from bot.queue.inbox import Inbox
from lab.doubles.sentinel import tables_with
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.fallback.store_jobs import MissedTurn, StoreJobs
from memory.store import MemoryStore
from memory.tables.operations import Operations
from tests.support.people import Group
from tests.support.queue import job_table

pytestmark = pytest.mark.anyio

WORD = "qzvjkw7"
DAY_MS = 86_400_000


async def test_what_waited_too_long_is_deleted_and_a_job_in_hand_is_not(
    database_url: str, connection: psycopg.Connection
) -> None:
    group, now = Group(), connection.execute("select extract(epoch from now()) * 1000").fetchone()
    alice = group.turn()
    assert now
    inbox = Inbox(database_url)
    for number, age in enumerate((40, 40, 1)):
        payload = {"text": f"{WORD}{number}"}
        at = int(now[0]) - age * DAY_MS
        inbox.enqueue(f"message:{number}", payload, lock=None, received_ms=at)
    inbox.close()
    connection.execute("set search_path = feishu_bot, public")
    connection.execute(
        "update feishu_bot.jobs set status = 'running', worker_id = 1"
        " where args #>> '{payload,text}' = %s",
        [f"{WORD}0"],
    )
    async with connection_pool(database_url, size=2) as pool:
        jobs = StoreJobs(pool)
        for name in ("old", "young"):
            turn = MissedTurn(alice, group.message(name), f"{WORD} {name}", "2026-01-01T00:00:00Z")
            await jobs.keep_turn(turn, unsent=True)
        await jobs.take_back("om_1", alice.chat_id, keep=True)
    connection.execute(
        "update feishu_bot.jobs set queued_at = now() - interval '40 days'"
        " where args #>> '{turn,turn_id}' = %s or args ? 'recall'",
        [group.message("old")],
    )

    async with job_table(database_url) as table:
        assert await table.forget_old(days=30) == 2

    left = connection.execute(
        "select coalesce(args #>> '{payload,text}', args #>> '{turn,turn_id}', 'recall')"
        " from feishu_bot.jobs order by 1"
    ).fetchall()
    stays = [group.message("young"), f"{WORD}0", f"{WORD}2", "recall"]
    assert [one for (one,) in left] == sorted(stays)


async def test_a_chat_that_was_left_goes_when_nothing_tells_of_it(
    connection: psycopg.Connection, rpc: PostgresRpc
) -> None:
    group = Group()
    for chat in ("left", "told", "here"):
        connection.execute(
            "insert into chats (chat_id, tenant_key, name, gone_at) values (%s, 'tenant', %s,"
            " case when %s then now() - interval '40 days' end)",
            [group.chat(chat), f"{WORD} {chat}", chat != "here"],
        )
        connection.execute(
            "insert into chat_members (chat_id, tenant_key, open_id) values (%s, 'tenant', 'ou_a')",
            [group.chat(chat)],
        )
    told = group.turn(chat="told")
    await MemoryStore(rpc).begin_turn(told, turn_id=group.message("said"), content="Hello")

    await Operations(rpc).apply_retention(30)

    chats = connection.execute("select chat_id from chats order by chat_id").fetchall()
    assert chats == sorted([(group.chat("told"),), (group.chat("here"),)])
    members = connection.execute("select chat_id from chat_members").fetchall()
    assert members == [(group.chat("here"),)]
    assert tables_with(connection, f"{WORD} left") == set()
