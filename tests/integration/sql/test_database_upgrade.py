"""A database of an earlier version becomes what a blank one becomes, and keeps its rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from memory import migrations
from tests.support.postgres import Server
from tests.support.schema import KINDS, definitions, differences, lost, rows

STORED = Path(__file__).parents[2] / "data" / "database_of_version_0.1.sql"

# For every kind of definition a change of exactly that kind.
CHANGES = {
    "column": "alter table public.agent_chats alter column title set default 'changed'",
    "constraint": "alter table public.people add constraint added check (name <> 'x')",
    "index": "drop index public.agent_messages_card_idx",
    "table": "alter table public.people disable row level security",
    "grants on table": "grant select on public.people to anon",
    "policy": "alter policy agent_chats_select on public.agent_chats using (true)",
    "trigger": "alter table public.agent_messages disable trigger agent_messages_index_insert",
    "function": "alter function bot_private.card_block() volatile",
    "grants on function": "grant execute on function bot_private.card_block() to anon",
    "type": "alter type feishu_bot.procrastinate_job_status add value 'changed'",
    "schema": "grant usage on schema feishu_bot to anon",
}


@pytest.fixture(scope="module")
def stored(postgres_server: Server) -> Iterator[str]:
    """The stored database as it was left."""
    with postgres_server.fresh_database() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(STORED.read_bytes())
        yield url


@pytest.fixture(scope="module")
def before(stored: str) -> dict[str, list[dict]]:
    with psycopg.connect(stored) as connection:
        return rows(connection)


@pytest.fixture(scope="module")
def migrated(stored: str, before: dict) -> Iterator[psycopg.Connection]:
    """The stored database after the migrations of today."""
    migrations.apply(stored)
    with psycopg.connect(stored, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def blank(database: psycopg.Connection) -> psycopg.Connection:
    """What a new database is."""
    return database


def test_the_stored_database_has_rows_in_every_table(before: dict) -> None:
    assert [table for table, found in before.items() if not found] == []


def test_after_migrating_nothing_tells_it_from_a_new_database(
    migrated: psycopg.Connection, blank: psycopg.Connection
) -> None:
    assert differences(definitions(migrated), definitions(blank)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_of_any_kind_would_be_seen(blank: psycopg.Connection, kind: str) -> None:
    original = definitions(blank)
    with blank.transaction(force_rollback=True):
        blank.execute(CHANGES[kind].encode())
        changed = definitions(blank)

    assert original != changed
    assert all(name.startswith(f"{kind} ") for name in differences(original, changed))


def test_every_row_is_kept(migrated: psycopg.Connection, before: dict) -> None:
    gone = lost(before, rows(migrated))

    # an answer carries who asked for it now; summaries are made again, of one place; and turns are
    # found by who spoke and where
    answers = [row for table, row in gone if table == "agent_messages"]
    assert all(row["role"] == "assistant" and row["actor_id"] is None for row in answers)
    assert {table for table, _ in gone} == {"agent_messages", "agent_summaries", "agent_turn_terms"}
    tokens = {row["first_id"]: row["length"] for row in rows(migrated)["bot_private.turn_words"]}
    indexed = [row for table, row in gone if table == "agent_turn_terms"]
    assert all(row["length"] <= tokens[row["first_id"]] for row in indexed)
    assert [row for row in rows(migrated)["agent_messages"] if row["actor_id"] is None] == []


@pytest.mark.parametrize(
    "statement",
    ["delete from public.agent_presses", "update public.people set name = 'X' where name <> ''"],
)
def test_a_row_that_went_or_changed_would_be_seen(
    migrated: psycopg.Connection, before: dict, statement: str
) -> None:
    had = lost(before, rows(migrated))
    with migrated.transaction(force_rollback=True):
        migrated.execute(statement.encode())
        assert len(lost(before, rows(migrated))) > len(had)


def test_the_names_in_its_ledger_stay(migrated: psycopg.Connection, before: dict) -> None:
    names = {row["name"] for row in rows(migrated)["feishu_bot.migrations"]}

    assert names > {row["name"] for row in before["feishu_bot.migrations"]}
    assert "0110_vectors.sql" in names  # a file that went with its functions
