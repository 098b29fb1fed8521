"""The record of a turn as it is stored: smaller, and told as it was handed over."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.support.actors import BOB, HERE, TENANT

_LINES = [f"om_{n:032x}" for n in range(12)]
_RECORD: dict[str, Any] = {
    "bot": "Memo", "model": "gpt-4.1-mini", "tools": [], "budget": 6000, "attempt": 1,
    "outcome": "answered", "seconds": 3.476, "send_ms": 16.1, "summary": None, "cut_short": "",
    "recalled": _LINES[:4], "tokens_in": 2463, "came_along": False, "recent_ids": [560, 828, 878],
    "tokens_out": 35, "history_ids": [2905], "specialists": [], "transcript_ids": _LINES[4:],
}  # fmt: skip


@pytest.fixture
def turn(database: psycopg.Connection) -> Iterator[psycopg.Connection]:
    with database.transaction(force_rollback=True):
        thread = f"feishu:{HERE}:r"
        database.execute(
            "insert into agent_chats (id, user_id, tenant_key, chat_id, root_id)"
            " values (%s, %s, %s, %s, 'r')",
            [thread, BOB, TENANT, HERE],
        )
        database.execute(
            "insert into agent_turns (id, conversation_id, user_id, actor_id, tenant_key, chat_id,"
            " state, given) values ('om_1', %s, %s, %s, %s, %s, 'sent', %s)",
            [thread, BOB, BOB, TENANT, HERE, sorted(_LINES[1:])],
        )
        database.execute(
            "insert into agent_messages (conversation_id, user_id, actor_id, turn_id, tenant_key,"
            " chat_id, role, content, status)"
            " values (%s, %s, %s, 'om_1', %s, %s, 'user', 'x', 'received')",
            [thread, BOB, BOB, TENANT, HERE],
        )
        yield database


def keep(turn: psycopg.Connection, **record: Any) -> None:
    rows = [{"turn_id": "om_1", "day": "2026-11-20", "record": record}]
    turn.execute("select feishu_bot.keep_turn_records(%s, true)", [json.dumps(rows)])


def told(turn: psycopg.Connection) -> tuple[dict[str, Any], int]:
    """The record as readers get it, and the bytes of its row."""
    row = turn.execute(
        "select bot_private.told_record(bot_private.whole_record(r.short),"
        " bot_private.given_ids(t.given_messages, t.given)), pg_column_size(r)"
        " from agent_turn_records r join agent_turns t on t.id = r.turn_id"
    ).fetchone()
    assert row
    return row[0], row[1]


def test_a_record_is_told_as_it_was_but_for_what_is_empty(turn: psycopg.Connection) -> None:
    keep(turn, **_RECORD)

    record, size = told(turn)
    assert record == {k: v for k, v in _RECORD.items() if v}
    assert size < 300  # of 1,100


def test_a_record_that_comes_again_replaces_what_it_has_anew(turn: psycopg.Connection) -> None:
    keep(turn, **_RECORD)
    keep(turn, attempt=2, recalled=[], tools=["search"], transcript_ids=["om_other"])

    record, _ = told(turn)
    assert record["attempt"] == 2
    assert record["tools"] == ["search"]
    assert "recalled" not in record
    assert record["transcript_ids"] == ["om_other"]
    assert record["recent_ids"] == [560, 828, 878]


def test_a_field_without_a_place_is_kept_by_its_name(turn: psycopg.Connection) -> None:
    record = {"seconds": 1.5, "model": 'x, "y"]', "mood_ms": 3, "of": {"day": [1, 2]}}
    keep(turn, **record)

    assert told(turn)[0] == record


def test_a_stored_record_is_read_by_places_that_never_change(turn: psycopg.Connection) -> None:
    turn.execute(
        "insert into agent_turn_records (turn_id, short) values ('om_1', %s)",
        ['[8388610,"Memo",true]'],
    )

    assert told(turn)[0] == {"bot": "Memo", "came_along": True}


def test_a_foot_is_kept_without_its_empty_list_and_told_with_it(
    database: psycopg.Connection,
) -> None:
    foots = [
        {"language": "en", "seconds": 1.5, "recalled": []},
        {"language": "zh", "seconds": 2, "recalled": [["2026-11-20", "chat", "om_gone"]]},
        None,
    ]
    for foot in foots:
        row = database.execute(
            "select bot_private.told_foot(k), k from bot_private.kept_foot(%s) k",
            [json.dumps(foot) if foot else None],
        ).fetchone()
        assert row
        assert row[0] == (foot and foot | {"quotes": {}})
        assert [] not in (row[1] or {}).values()
