"""The number of a person's thread, by which its messages are found."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.actors import (
    ACTORS,
    ALICE,
    BOB,
    HERE,
    SECOND_THREAD,
    TENANT,
    THREAD,
    become,
)
from tests.support.crowds import copy_rows

OPENED = """
select open_turn(%s, %s, %s, %s, %s, %s, 'Somebody', %s, 'said 说', 10)
"""


def test_messages_of_a_thread_have_one_number_and_other_threads_have_others(
    database: psycopg.Connection,
) -> None:
    threads = [
        (tenant, f"feishu:{HERE}:{root}", person)
        for tenant in (TENANT, "")
        for root in ("om_root", "main", "话题")
        for person in (ALICE, BOB)
    ]
    for place, (tenant, conversation, person) in enumerate(threads):
        for n in range(2):
            root = conversation.split(":")[2]
            turn = f"om_{place}_{n}"
            database.execute(OPENED, [turn, conversation, HERE, root, person, person, tenant])

    numbers = database.execute("""
        select tenant_key, conversation_id, user_id, array_agg(distinct thread),
               bot_private.thread_number(tenant_key, conversation_id, user_id)
        from agent_messages group by 1, 2, 3
    """).fetchall()

    assert {(tenant, conversation, person) for tenant, conversation, person, *_ in numbers} == set(
        threads
    )
    assert all(stored == [looked_for] for *_, stored, looked_for in numbers)
    assert len({looked_for for *_, looked_for in numbers}) == len(threads)


def test_a_token_finds_the_newest_of_a_thread_in_its_index(database: psycopg.Connection) -> None:
    with database.transaction(force_rollback=True):
        become(database, ACTORS["subject here"])
        database.execute("set local enable_seqscan = off")
        plan = database.execute("""
            explain select m.id from agent_messages m
            where m.thread >= bot_private.thread_number('', 'c', 'u')
              and m.thread <= bot_private.thread_number('', 'c', 'u') and m.id <= 9
            order by m.thread desc, m.id desc limit 10
        """).fetchall()

    text = "\n".join(line for (line,) in plan)
    assert "Index Scan Backward using agent_messages_thread_idx" in text
    assert "Index Cond: ((thread >= " in text
    assert "Sort" not in text


@pytest.mark.parametrize("asked_by", [ALICE, BOB], ids=["who began it", "somebody else"])
def test_going_on_with_a_thread_reads_few_messages_however_many_there_are(
    database: psycopg.Connection, asked_by: str
) -> None:
    thread = f"feishu:{HERE}:om_begun_{asked_by}"
    opening = [thread, HERE, f"om_begun_{asked_by}"]
    with database.transaction(force_rollback=True):
        database.execute(OPENED, [f"om_begun_{asked_by}", *opening, ALICE, ALICE, TENANT])
        copy_rows(database, "agent_messages", 5000)
        database.execute("""
            select setval(pg_get_serial_sequence('agent_messages', 'id'), max(id))
            from agent_messages
        """)
        before = _read(database)
        database.execute(OPENED, [f"om_goes_on_{asked_by}", *opening, asked_by, asked_by, TENANT])
        assert _read(database) - before < 100


def _read(database: psycopg.Connection) -> int:
    """Messages that this transaction has read so far."""
    row = database.execute("""
        select seq_tup_read + idx_tup_fetch from pg_stat_xact_user_tables
        where relname = 'agent_messages'
    """).fetchone()
    return int(row[0]) if row else 0


def test_all_that_is_made_of_a_thread_of_comments_lies_in_that_thread(
    database: psycopg.Connection,
) -> None:
    conversation, chat = f"feishu:{THREAD}", THREAD
    database.execute(OPENED, ["comment:docx:71", conversation, chat, "main", ALICE, ALICE, TENANT])
    database.execute(
        "insert into agent_summaries (tenant_key, conversation_id, chat_id, user_id, content,"
        " until_message_id) values (%s, %s, %s, %s, 'said', 1)",
        [TENANT, conversation, chat, ALICE],
    )
    places = [
        (name, check)
        for name, check in database.execute(
            "select conrelid::regclass::text, pg_get_constraintdef(oid) from pg_constraint"
            " where conname like '%%_place' and contype = 'c'"
        ).fetchall()
    ]
    made_there = {
        "agent_chats", "agent_turns", "agent_messages", "agent_working_memory",
        "agent_working_memory_history", "agent_summaries", "agent_embeddings",
    }  # fmt: skip
    taken = {
        name for name, check in places if "|| ':'::text)" in check.split(",")[0] or "doc:" in check
    }
    assert made_there & {name for name, _ in places} <= taken
    for stranger in (f"feishu:{SECOND_THREAD}", "feishu:oc_here:main"):
        with pytest.raises(psycopg.errors.CheckViolation), database.transaction():
            database.execute(
                "insert into agent_turns (id, conversation_id, user_id, actor_id, tenant_key,"
                " chat_id) values ('x', %s, %s, %s, %s, %s)",
                [stranger, ALICE, ALICE, TENANT, chat],
            )
