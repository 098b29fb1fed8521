"""A database of an earlier version becomes what a blank one becomes, and keeps its rows."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from memory import baseline, migrations
from tests.support import stored_database
from tests.support.postgres import Server
from tests.support.schema import KINDS, definitions, differences, lost, rows

# For every kind of definition a change of exactly that kind.
CHANGES = {
    "column": "alter table public.agent_chats alter column title set default 'changed'",
    "constraint": "alter table public.people add constraint added check (name <> 'x')",
    "index": "drop index public.agent_messages_card_idx",
    "table": "alter table public.people disable row level security",
    "grants on table": "grant select on public.people to anon",
    "grants on column": "grant select (name) on public.people to anon",
    "policy": "alter policy agent_chats_select on public.agent_chats using (true)",
    "trigger": "alter table public.agent_messages disable trigger agent_messages_index_insert",
    "function": "alter function bot_private.card_block() volatile",
    "grants on function": "grant execute on function bot_private.card_block() to anon",
    "type": "create type feishu_bot.added as enum ('x')",
    "schema": "grant usage on schema feishu_bot to anon",
}


@pytest.fixture(scope="module")
def stored(postgres_server: Server) -> Iterator[str]:
    """The stored database as it was left."""
    with postgres_server.fresh_database() as url:
        stored_database.load(url)
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
    after = rows(migrated)
    gone = [
        (table, row)
        for table, row in lost(before, after)
        # the queue has tables of its own now (`test_moved_queue`)
        if not table.startswith(("feishu_bot.procrastinate_", "feishu_bot.session_workers"))
    ]

    # answers know more of their sources, and the functions are those of today
    assert {table for table, _ in gone} == {"agent_turns", "feishu_bot.migrations"}
    assert [row["name"].split()[0] for table, row in gone if "migrations" in table] == ["functions"]
    now = {row["id"]: row for row in after["agent_turns"]}
    cards = {row["message_id"] for row in after["agent_messages"] if row["role"] == "assistant"}
    for row in (row for table, row in gone if table == "agent_turns"):
        kept = {name: value for name, value in row.items() if name != "given"}
        assert kept.items() <= now[row["id"]].items()
        # a card that it was given is named by the card's turn
        assert set(row["given"]) - set(now[row["id"]]["given"]) <= cards


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


def test_it_counts_the_baseline_as_applied_and_keeps_the_names_it_had(
    migrated: psycopg.Connection, before: dict
) -> None:
    had = {row["name"] for row in before["feishu_bot.migrations"]}
    names = {row["name"] for row in rows(migrated)["feishu_bot.migrations"]}

    assert baseline.NAME not in had
    assert {name for name in had if not name.startswith("functions ")} | {baseline.NAME} <= names


def test_a_server_that_looks_for_files_lacks_those_after_the_baseline(
    postgres_server: Server,
) -> None:
    with postgres_server.fresh_database() as url:
        stored_database.load(url)
        missing = migrations.pending(url)
        applied = migrations.apply(url)

    assert baseline.NAME not in missing
    assert missing == applied
    assert "0460_topic_groups.sql" in missing


@pytest.mark.parametrize(
    "lacking", ["0451_turns_by_number.sql", "backfills/0421_turn_terms_gone.sql"]
)
def test_a_database_that_has_only_some_of_the_files_before_is_told_the_way(
    postgres_server: Server, lacking: str
) -> None:
    with postgres_server.fresh_database() as url:
        stored_database.load(url)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("delete from feishu_bot.migrations where name = %s", [lacking])
            had = definitions(connection)

        with pytest.raises(migrations.MigrationFailed, match=rf"it lacks {lacking}\): check out"):
            migrations.apply(url)

        with psycopg.connect(url) as connection:
            assert definitions(connection) == had
        assert baseline.NAME in migrations.pending(url)
