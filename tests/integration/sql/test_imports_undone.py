"""A removed import leaves the database as it was, and one is the same however it was read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import psycopg
import pytest

SCHEMAS = ("public", "bot_private", "feishu_bot")
CHAT, TENANT = "oc_undone", "tenant"
NOW_MS = 1_790_000_000_000


def message(number: int, *, root: str = "", author: str = "ou_ann") -> dict[str, object]:
    return {
        "message_id": f"om_{number}", "root_id": root, "author_id": author, "author_name": "Ann",
        "sent_ms": NOW_MS - 1_000_000 + number // 2, "content": f"the walrus {number} of the zoo",
    }  # fmt: skip


def page(
    messages: Sequence[Mapping[str, object]], after: str = "", **more: object
) -> dict[str, object]:
    whole = {"threads": [], "memberships": [], "counts": {}, "next_position": after}
    return {"messages": messages, **whole, **more}


def begin(connection: psycopg.Connection) -> int:
    [row] = connection.execute(
        "select start_import(%s, %s, 'group', null, %s)", [CHAT, TENANT, NOW_MS]
    ).fetchone() or [{}]
    return int(row["id"])


def store(connection: psycopg.Connection, number: int, at: str, body: Mapping[str, object]) -> None:
    connection.execute(
        "select store_import_page(%s, 'chat', %s, %s)", [number, at, json.dumps(body)]
    )


def finish(connection: psycopg.Connection, number: int) -> None:
    while connection.execute("select next_import_thread(%s)", [number]).fetchone() != (None,):
        connection.execute("update bot_private.import_threads set is_read = true")
    connection.execute("select finish_import(%s, %s)", [number, json.dumps({"ou_ann": ["Ann"]})])


def remove(connection: psycopg.Connection, number: int) -> int:
    connection.execute("select set_import_state(%s, %s, 'removing')", [CHAT, TENANT])
    removed = 0
    while True:
        [step] = connection.execute(
            "select remove_import_messages(%s, 30)", [number]
        ).fetchone() or [{}]
        removed += step["removed"]
        if step["import"] is None:
            return removed


def dump(connection: psycopg.Connection, *, but: Sequence[str] = ()) -> dict[str, list[str]]:
    """Every row of every table, without the columns `but`."""
    tables = connection.execute(
        "select format('%%I.%%I', c.relnamespace::regnamespace, c.relname) from pg_class c"
        " where c.relkind = 'r' and c.relnamespace::regnamespace::text = any (%s)",
        [list(SCHEMAS)],
    ).fetchall()
    return {
        table: sorted(
            json.dumps({key: value for key, value in row.items() if key not in but}, sort_keys=True)
            for (row,) in connection.execute(f"select to_jsonb(t) from {table} t".encode())
        )
        for (table,) in tables
    }


def read_in_order(connection: psycopg.Connection) -> int:
    number = begin(connection)
    joined = {"name": "Ann", "at_ms": NOW_MS - 2_000_000, "joined": True}
    first = [message(n) for n in range(50)]
    second = [message(n, root="om_1" if n % 7 == 0 else "") for n in range(50, 100)]
    store(connection, number, "", page(first, "2", threads=["omt_1"], memberships=[joined]))
    store(connection, number, "2", page(second))
    finish(connection, number)
    return number


def read_otherwise(connection: psycopg.Connection) -> int:
    """The same messages: some twice, the later ones first, with a page that comes too late."""
    number = begin(connection)
    joined = {"name": "Ann", "at_ms": NOW_MS - 2_000_000, "joined": True}
    later = [message(n, root="om_1" if n % 7 == 0 else "") for n in range(40, 100)]
    later[:10] = [message(n) for n in range(40, 50)]
    store(connection, number, "", page(later[::-1], "2", memberships=[joined, joined]))
    store(connection, number, "", page([message(777)]))
    store(connection, number, "2", page([message(n) for n in range(60)][::-1][10:], "3"))
    store(connection, number, "3", page(later + [message(n) for n in range(50)], threads=["omt_1"]))
    finish(connection, number)
    return number


@pytest.fixture
def talked(connection: psycopg.Connection) -> psycopg.Connection:
    """A database in which the bot has a memory of its own."""
    connection.execute(
        "insert into agent_chats (id, user_id, tenant_key, chat_id, root_id)"
        " values ('feishu:oc_undone:om_1', 'ou_ann', 'tenant', 'oc_undone', 'om_1')"
    )
    for number in range(3):
        connection.execute(
            "insert into agent_turns (id, conversation_id, user_id, actor_id, tenant_key, chat_id,"
            " state) values (%s, 'feishu:oc_undone:om_1', 'ou_ann', 'ou_ann', 'tenant',"
            " 'oc_undone', 'sent')",
            [f"om_asked_{number}"],
        )
        connection.execute(
            "insert into agent_messages (turn_id, conversation_id, user_id, actor_id, tenant_key,"
            " chat_id, role, content, status) values (%s, 'feishu:oc_undone:om_1', 'ou_ann',"
            " 'ou_ann', 'tenant', 'oc_undone', 'user', 'where is the walrus?', 'sent')",
            [f"om_asked_{number}"],
        )
    return connection


def test_what_was_imported_and_removed_leaves_no_row_behind(talked: psycopg.Connection) -> None:
    before = dump(talked)

    removed = remove(talked, read_in_order(talked))

    assert removed == 100
    assert dump(talked) == before
    assert before["bot_private.turn_words"]


def test_pages_in_another_order_and_twice_make_the_same_tables(talked: psycopg.Connection) -> None:
    times = ("created_at", "updated_at", "finished_at", "id", "import_id", "pages", "report")
    first = read_in_order(talked)
    in_order = dump(talked, but=times)
    words = dump(talked)["bot_private.turn_words"]
    remove(talked, first)

    read_otherwise(talked)

    assert dump(talked, but=times) == in_order
    assert dump(talked)["bot_private.turn_words"] == words
