"""`sql/schema.sql` describes the whole database, whoever applies it and from wherever one comes."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from memory import migrations
from memory.backends.embedded_host import installed_program
from tests.support.postgres import Server
from tests.support.schema import KINDS, definitions, differences

# One change of each kind, to show that the comparison would see it.
CHANGES = {
    "column": "alter table public.agent_chats alter column title set default 'changed'",
    "constraint": "alter table public.people add constraint added check (name <> 'x')",
    "index": "drop index public.agent_messages_card_idx",
    "table": "alter table public.people disable row level security",
    "replica identity": "alter table public.people replica identity full",
    "owner": "alter table public.people owner to service_role",
    "sequence": "alter sequence public.agent_messages_id_seq increment by 2",
    "comment": "comment on table public.people is 'changed'",
    "grants on table": "grant select on public.people to anon",
    "grants on column": "grant select (name) on public.people to anon",
    "policy": "alter policy agent_chats_select on public.agent_chats using (true)",
    "trigger": "alter table public.agent_messages disable trigger agent_messages_index_insert",
    "function": "alter function bot_private.card_block() volatile",
    "grants on function": "grant execute on function bot_private.card_block() to anon",
    "type": "create type feishu_bot.added as enum ('x')",
    "schema": "grant usage on schema feishu_bot to anon",
}
_OF_THE_CLUSTER = {
    "extension": "drop extension vector cascade",
    "default privilege": "alter default privileges in schema public grant select on tables to anon",
    "grants on database": "do $$ begin execute format("
    "'grant create on database %I to anon', current_database()); end $$",
    "role": "alter role anon set statement_timeout = '1s'",
}
# A copy of sql/ as it was released first; from then on numbered files lead from there to here.
_FIRST_RELEASE = Path(__file__).parents[2] / "data" / "first_release"


def described(url: str) -> dict[str, str]:
    with psycopg.connect(url) as connection:
        return definitions(connection)


@pytest.fixture(scope="module")
def migrated(postgres_server: Server) -> Iterator[dict[str, str]]:
    """What a migration makes of an empty database; a copy of one lacks the grants on it."""
    with postgres_server.fresh_database() as url:
        migrations.apply_migrations(url)
        yield described(url)


def test_psql_makes_of_the_file_what_the_migration_makes(
    blank_database_url: str, migrated: dict[str, str]
) -> None:
    psql = installed_program() / "bin" / "psql"
    file, vectors = migrations.FOLDER / migrations.WHOLE_SCHEMA, "select public.enable_vectors()"
    subprocess.run(
        [
            psql,
            "-XqAt",
            "-v",
            "ON_ERROR_STOP=1",
            "-1",
            "-f",
            file,
            "-c",
            vectors,
            blank_database_url,
        ],
        check=True,
    )

    assert differences(described(blank_database_url), migrated) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_of_any_kind_would_be_seen(database: psycopg.Connection, kind: str) -> None:
    original = definitions(database)
    with database.transaction(force_rollback=True):
        database.execute({**CHANGES, **_OF_THE_CLUSTER}[kind].encode())
        changed = definitions(database)

    assert any(name.startswith(f"{kind} ") for name in differences(original, changed))


def test_a_database_of_the_first_release_becomes_what_the_file_describes(
    blank_database_url: str, migrated: dict[str, str]
) -> None:
    assert _FIRST_RELEASE.exists() or migrations.read_numbered() == []
    released = _FIRST_RELEASE if _FIRST_RELEASE.exists() else migrations.FOLDER
    migrations.apply_migrations(blank_database_url, folder=released)
    migrations.apply_migrations(blank_database_url)

    assert differences(described(blank_database_url), migrated) == []


@pytest.mark.parametrize("is_forgotten", [False, True])
def test_a_change_goes_into_the_schema_and_into_a_numbered_file(
    postgres_server: Server, tmp_path: Path, is_forgotten: bool
) -> None:
    released = shutil.copytree(migrations.FOLDER, tmp_path / "released")
    following = shutil.copytree(released, tmp_path / "following")
    schema = following / migrations.WHOLE_SCHEMA
    line = "  topics boolean,  -- null: not learned yet\n"
    schema.write_text(schema.read_text().replace(line, f"{line}  mood text,\n"))
    if not is_forgotten:
        (following / "0002_moods.sql").write_text("alter table public.chats add column mood text;")

    with postgres_server.fresh_database() as old, postgres_server.fresh_database() as new:
        migrations.apply_migrations(old, folder=released)
        assert (
            migrations.apply_migrations(old, folder=following) == ["0002_moods.sql"][is_forgotten:]
        )
        assert migrations.apply_migrations(new, folder=following) == [migrations.WHOLE_SCHEMA]
        assert migrations.pending_steps(new, folder=following) == []
        differing = differences(described(old), described(new))

    assert differing == (["column public.chats.mood"] if is_forgotten else [])
