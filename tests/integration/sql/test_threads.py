"""The number of a person's thread, by which its messages are found."""

from __future__ import annotations

import psycopg

from tests.support.actors import ACTORS, ALICE, BOB, HERE, TENANT, become

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
