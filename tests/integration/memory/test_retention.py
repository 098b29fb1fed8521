"""Retention covers what waits in the queue and the spool, and chats that the bot has left."""

from __future__ import annotations

import psycopg
import pytest

from bot.queue.inbox import Inbox
from lab.doubles.sentinel import tables_with
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.fallback.spool import Spool, SpooledTurn
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
    pool = connection_pool(database_url, size=2)
    await pool.open()
    for name in ("old", "young"):
        turn = SpooledTurn(group.message(name), alice, f"{WORD} {name}", "Alice")
        await Spool(pool).open_turn(turn)
    await pool.close()
    connection.execute(
        "update feishu_bot.spool set asked_at = now() - interval '40 days' where turn_id = %s",
        [group.message("old")],
    )
    connection.execute(
        "insert into feishu_bot.late_writes (function, params, message_ids, asked_at)"
        " select f, jsonb_build_object('text', %s::text), '{om_1}', now() - interval '40 days'"
        " from unnest('{recall_message,log_decision}'::text[]) f",
        [WORD],
    )

    async with job_table(database_url) as table:
        assert await table.forget_old(days=30) == 3

    left = connection.execute(
        "select args #>> '{payload,text}' from feishu_bot.jobs order by 1"
    ).fetchall()
    assert left == [(f"{WORD}0",), (f"{WORD}2",)]
    assert connection.execute("select turn_id from feishu_bot.spool").fetchall() == [
        (group.message("young"),)
    ]
    assert connection.execute("select function from feishu_bot.late_writes").fetchall() == [
        ("recall_message",)
    ]


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
    await MemoryStore(rpc).open_turn(told, turn_id=group.message("said"), content="Hello")

    await Operations(rpc).apply_retention(30)

    chats = connection.execute("select chat_id from chats order by chat_id").fetchall()
    assert chats == sorted([(group.chat("told"),), (group.chat("here"),)])
    members = connection.execute("select chat_id from chat_members").fetchall()
    assert members == [(group.chat("here"),)]
    assert tables_with(connection, f"{WORD} left") == set()
