"""Whom the memory knew before there was a table of people is in it after the migration."""

from __future__ import annotations

import shutil
from pathlib import Path

import psycopg

from memory import migrations

_SQL = Path(__file__).parents[2] / "sql"
_HERE = ("feishu:oc:om", "tenant", "oc")
# turn, subject, sender, the sender's name
_ASKED = (
    ("om_1", "ou_alice", "ou_alice", "Alice"),
    ("om_2", "ou_alice", "ou_alice", "Alice Lee"),
    ("om_3", "ou_john", "ou_bob", "ou_bob"),  # called by the id: the name was not known
    ("om_4", "ou_john", "ou_robot", "Robot"),
)


def _ask(connection: psycopg.Connection, turn: str, subject: str, sender: str, name: str) -> None:
    connection.execute(
        "insert into agent_chats (id, tenant_key, chat_id, user_id, root_id)"
        " values (%s, %s, %s, %s, 'om') on conflict do nothing",
        [*_HERE, subject],
    )
    connection.execute(
        "insert into agent_turns (conversation_id, tenant_key, chat_id, id, user_id, actor_id)"
        " values (%s, %s, %s, %s, %s, %s)",
        [*_HERE, turn, subject, sender],
    )
    connection.execute(
        "insert into agent_messages (conversation_id, tenant_key, chat_id, turn_id, user_id,"
        " actor_id, actor_name, role, content, status)"
        " values (%s, %s, %s, %s, %s, %s, %s, 'user', 'x', 'received')",
        [*_HERE, turn, subject, sender, name],
    )


def _transcribe_robot(connection: psycopg.Connection) -> None:
    connection.execute(
        "insert into chat_conversations (chat_id, tenant_key) values ('oc', 'tenant')"
    )
    connection.execute(
        "insert into chat_transcript (chat_id, tenant_key, author, author_id, content, timestamp,"
        " is_bot, message_id) values ('oc', 'tenant', 'Robot', 'ou_robot', 'x', 1, true, 'om_4')"
    )


def test_people_of_the_memory_are_in_the_table_with_their_latest_name(
    blank_database_url: str, tmp_path: Path
) -> None:
    for file in sorted(_SQL.glob("*.sql")):
        if file.name < "0100":
            shutil.copy(file, tmp_path)
    migrations.apply(blank_database_url, folder=tmp_path)
    with psycopg.connect(blank_database_url) as connection:
        for asked in _ASKED:
            _ask(connection, *asked)
        _transcribe_robot(connection)

    assert "0100_people.sql" in str(migrations.apply(blank_database_url))

    with psycopg.connect(blank_database_url) as connection:
        rows = connection.execute("select open_id, name from people order by open_id").fetchall()
    assert rows == [("ou_alice", "Alice Lee"), ("ou_bob", ""), ("ou_john", "")]
