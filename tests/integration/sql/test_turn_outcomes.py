"""How turns ended, as the database writes it."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.types.json import Jsonb

from bot.queue.operator_actions import QueueOperations, Reference


def turn(connection: psycopg.Connection, id: str, **columns: object) -> None:
    row = {"state": "sent", "origin": "message", "parent_id": None, **columns}
    connection.execute(
        "insert into agent_chats (id, user_id, chat_id, chat_type, root_id)"
        " values ('feishu:oc_o:main', 'ou_o', 'oc_o', 'group', 'main') on conflict do nothing"
    )
    names = ", ".join(row)
    places = ", ".join(["%s"] * len(row))
    connection.execute(
        "insert into agent_turns (id, conversation_id, user_id, actor_id, chat_id,"
        f" {names}) values (%s, 'feishu:oc_o:main', 'ou_o', 'ou_o', 'oc_o', {places})".encode(),
        [id, *row.values()],
    )


def said(connection: psycopg.Connection, id: str, content: str, status: str = "sent") -> None:
    connection.execute(
        "insert into agent_messages (conversation_id, user_id, actor_id, turn_id, chat_id, role,"
        " content, status) values ('feishu:oc_o:main', 'ou_o', 'ou_o', %s, 'oc_o', 'assistant',"
        " %s, %s)",
        [id, content, status],
    )


def ended(connection: psycopg.Connection, id: str) -> tuple[str | None, str]:
    row = connection.execute(
        "select outcome, outcome_reason from agent_turns where id = %s", [id]
    ).fetchone()
    assert row
    return row


@pytest.fixture
def connection(database_url: str) -> psycopg.Connection:
    with psycopg.connect(database_url, autocommit=True) as opened:
        yield opened


def refusal(reason: str) -> Jsonb:
    return Jsonb({"outcome": "refused", "reason": reason})


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"state": "open"}, (None, "")),
        ({"state": "pending", "intended": refusal("used_up")}, (None, "")),
        ({"state": "sent"}, ("answered", "")),
        ({"state": "sent", "intended": refusal("used_up")}, ("refused", "used_up")),
        ({"state": "failed", "error": "feishu 230001"}, ("undelivered", "feishu 230001")),
        ({"state": "failed", "intended": refusal("x")}, ("undelivered", "unknown")),
        ({"state": "failed", "error": "nothing to say"}, ("silent", "nothing_to_say")),
        ({"state": "failed", "error": "taken back"}, ("taken_back", "")),
        ({"state": "cancelled"}, ("taken_back", "")),
        (
            {"state": "cancelled", "origin": "offer", "parent_id": "om_1"},
            ("offer", ""),
        ),
    ],
)
def test_the_state_and_what_the_reply_means_tell_how_it_ended(
    connection: psycopg.Connection, columns: dict[str, object], expected: tuple[str | None, str]
) -> None:
    turn(connection, "om_1", **columns)
    assert ended(connection, "om_1") == expected


def test_what_is_sent_again_is_under_way_until_it_is_there(
    connection: psycopg.Connection, database_url: str
) -> None:
    turn(connection, "om_1", state="failed", error="feishu 230001")
    said(connection, "om_1", "the answer", "failed")
    queue = QueueOperations(database_url)
    [one] = queue.failed(Reference.parse("om_1"))
    assert (str(one.reference), one.reason, one.excused) == ("om_1", "feishu 230001", False)

    assert queue.retry(Reference.parse("om_1"))
    assert not queue.retry(Reference.parse("om_1"))
    assert ended(connection, "om_1") == (None, "")
    (rows,) = connection.execute("select pending_replies(600, 10)").fetchone() or ([],)
    assert [(row["turn_id"], row["stored_ms"]) for row in rows] == [("om_1", 0)]

    connection.execute("update agent_turns set state = 'sent', error = null where id = 'om_1'")
    assert ended(connection, "om_1") == ("answered", "")


def test_what_is_dropped_is_not_offered_again(
    connection: psycopg.Connection, database_url: str
) -> None:
    turn(connection, "om_1", state="failed", error="feishu 230001")
    said(connection, "om_1", "the answer", "failed")
    queue = QueueOperations(database_url)

    assert queue.drop(Reference.parse("om_1"))
    assert queue.failed() == []
    assert ended(connection, "om_1") == ("undelivered", "feishu 230001")
