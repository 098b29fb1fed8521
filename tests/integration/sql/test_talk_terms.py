"""What stays of talk that leaves the transcript: for which turns, and at what cost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.support.actors import BOB, HERE, TENANT

NOW_MS = "(extract(epoch from clock_timestamp()) * 1000)::bigint"
_TURNS = """
insert into agent_turns (id, conversation_id, user_id, actor_id, tenant_key, chat_id, state,
                         given_messages)
select 'om_' || %(chat)s || n, %(thread)s, %(person)s, %(person)s, %(tenant)s, %(chat)s, 'sent',
       array(select lpad(l::text, 32, '0')::uuid from generate_series(1, 20) l)
from generate_series(1, %(turns)s) n
"""


@pytest.fixture
def chat(database: psycopg.Connection) -> Iterator[psycopg.Connection]:
    with database.transaction(force_rollback=True):
        begin(database, HERE)
        yield database


def begin(database: psycopg.Connection, chat: str, turns: int = 5) -> None:
    """A chat with `turns` turns, each of which was given twenty lines."""
    database.execute(
        "insert into chat_conversations (tenant_key, chat_id, active, last_activity)"
        " values (%s, %s, true, 1)",
        [TENANT, chat],
    )
    thread = f"feishu:{chat}:r"
    database.execute(
        "insert into agent_chats (id, user_id, tenant_key, chat_id, root_id)"
        " values (%s, %s, %s, %s, 'r')",
        [thread, BOB, TENANT, chat],
    )
    database.execute(
        _TURNS, {"chat": chat, "thread": thread, "person": BOB, "tenant": TENANT, "turns": turns}
    )


def hear(database: psycopg.Connection, *lines: str) -> None:
    records = [
        {"message_id": line, "author": "Bob", "author_id": BOB, "content": f"the falcon is {line}",
         "timestamp": n + 1, "is_bot": False, "ours": False}
        for n, line in enumerate(lines)
    ]  # fmt: skip
    database.execute(
        "select bot_private.add_to_transcript(%s, %s, %s, 1, 0, 8)",
        [HERE, TENANT, json.dumps(records)],
    )


def one(database: psycopg.Connection, query: str) -> Any:
    row = database.execute(query).fetchone()
    assert row
    return row[0]


def readers(database: psycopg.Connection, source: str) -> int | None:
    """Turns with whose hashes those of a line are kept; None where they are not."""
    found = database.execute(
        "select cardinality(readers) from bot_private.talk_terms where source = %s", [source]
    ).fetchone()
    return found[0] if found else None


def blocks_read(database: psycopg.Connection) -> int:
    gone = [{"message_id": f"om_{n:032}", "content": "falcon", "is_bot": False,
             "timestamp": one(database, f"select {NOW_MS}")} for n in range(1, 21)]  # fmt: skip
    database.execute("truncate bot_private.talk_terms")
    plan = one(
        database,
        "explain (analyze, buffers, format json) select bot_private.keep_talk_terms("
        f"'{HERE}', '{json.dumps(gone)}')",
    )
    assert one(database, "select sum(cardinality(readers)) from bot_private.talk_terms") == 20 * 5
    return int(plan[0]["Plan"]["Shared Hit Blocks"]) + int(plan[0]["Plan"]["Shared Read Blocks"])


def test_talk_that_leaves_costs_the_same_however_many_turns_other_chats_have(
    chat: psycopg.Connection,
) -> None:
    blocks_read(chat)
    alone = blocks_read(chat)

    begin(chat, "oc_elsewhere", turns=5_000)
    chat.execute("analyze agent_turns")
    blocks_read(chat)

    assert blocks_read(chat) <= 1.3 * alone


def test_the_oldest_leave_several_at_a_time(chat: psycopg.Connection) -> None:
    kept = "select count(*) from chat_transcript"
    hear(chat, *(f"om_{n}" for n in range(9)))
    assert one(chat, kept) == 9

    hear(chat, *(f"om_{n}" for n in range(10)))
    assert one(chat, kept) == 8


def test_a_turn_keeps_a_line_of_its_prompt_however_long_ago_that_was(
    chat: psycopg.Connection,
) -> None:
    chat.execute(
        "update agent_turns set created_at = now() + interval '5 hours', given = '{om_0}'"
        " where chat_id = %s", [HERE],
    )  # fmt: skip
    hear(chat, *(f"om_{n}" for n in range(10)))

    assert readers(chat, "om_0") == 5


@pytest.mark.parametrize("line", ["om_0", f"om_{7:032x}"])
def test_a_line_is_kept_once_and_goes_with_the_last_turn_that_was_given_it(
    chat: psycopg.Connection, line: str
) -> None:
    chat.execute(
        "update agent_turns set given = k.besides, given_messages = k.messages"
        " from bot_private.given_parts(%(lines)s) k where chat_id = %(chat)s",
        {"lines": [line], "chat": HERE},
    )
    hear(chat, line, *(f"om_{n}" for n in range(1, 10)))
    turns = [id for (id,) in chat.execute("select id from agent_turns order by id").fetchall()]

    for left, turn in zip((4, 3, 2, 1, None), turns, strict=True):
        chat.execute("delete from agent_turns where id = %s", [turn])
        assert readers(chat, line) == left
    assert one(chat, "select count(*) from bot_private.source_terms") == 0


def test_a_question_is_kept_only_when_its_turn_goes(chat: psycopg.Connection) -> None:
    asked = f"om_{HERE}1"
    chat.execute("update agent_turns set given = %s where id <> %s", [[asked], asked])
    chat.execute(
        "update agent_turns set created_at = now() - interval '40 days' where id = %s", [asked]
    )
    chat.execute(
        "insert into agent_messages (conversation_id, user_id, turn_id, tenant_key, chat_id, role,"
        " content, actor_id, status) select conversation_id, user_id, id, tenant_key, chat_id,"
        " 'user', 'the falcon is grey', actor_id, 'received' from agent_turns where id = %s",
        [asked],
    )
    hear(chat, asked, *(f"om_{n}" for n in range(10)))
    assert readers(chat, asked) is None

    chat.execute("select apply_retention(30, 100)")
    assert one(chat, "select count(*) from agent_turns") == 4
    assert readers(chat, asked) == 4
    told = "select array(select bot_private.read_terms(%s, array['falcon', 'heron']))"
    assert chat.execute(told.encode(), [[asked]]).fetchone() == (["falcon"],)
