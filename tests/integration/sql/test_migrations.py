"""Migrations: from empty, again, at once, without a superuser, and when something is in the way."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from lab.doubles.processes import eventually
from memory import migrations
from tests.support.postgres import Server, database_name, start_server, statements_for_a_superuser
from tests.support.schema import definitions

ROOT = Path(__file__).parents[3]
ROLES = ("anon", "authenticated", "service_role", "bot_console", "bot_verifier")

_APPLY = """
import json, sys
from memory import migrations
print(json.dumps(migrations.apply_migrations(sys.argv[1])))
"""


def test_an_empty_database_gets_the_whole_schema_in_one_step(blank_database_url: str) -> None:
    lines: list[str] = []
    assert migrations.pending_steps(blank_database_url) == [migrations.WHOLE_SCHEMA]

    assert migrations.apply_migrations(blank_database_url, report=lines.append) == [
        migrations.WHOLE_SCHEMA
    ]

    assert lines == ["applying schema.sql"]
    assert migrations.pending_steps(blank_database_url) == []


def test_the_second_time_nothing_is_applied_and_nothing_changes(blank_database_url: str) -> None:
    migrations.apply_migrations(blank_database_url)
    before = described(blank_database_url)

    assert migrations.apply_migrations(blank_database_url) == []
    assert described(blank_database_url) == before


def test_two_processes_at_once_apply_every_step_once(blank_database_url: str) -> None:
    name = database_name(blank_database_url)
    with psycopg.connect(blank_database_url, autocommit=True) as gate:
        gate.execute("select pg_advisory_lock(%s)", [migrations._LOCK_KEY])
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", _APPLY, blank_database_url],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(2)
        ]
        both_wait(gate, name)
        gate.execute("select pg_advisory_unlock(%s)", [migrations._LOCK_KEY])
    outputs = [process.communicate(timeout=180) for process in processes]

    assert [process.returncode for process in processes] == [0, 0], outputs
    first, second = sorted((json.loads(out) for out, _ in outputs), key=len)
    assert first == []
    assert second == [migrations.WHOLE_SCHEMA]


def both_wait(connection: psycopg.Connection, database: str) -> None:
    """Returns when two sessions of `database` wait for the migration lock."""
    waiting = (
        "select count(*) from pg_locks l join pg_database d on d.oid = l.database"
        " where l.locktype = 'advisory' and not l.granted and d.datname = %s"
    )
    for _ in range(600):
        if connection.execute(waiting, [database]).fetchone() == (2,):
            return
        connection.execute("select pg_sleep(0.05)")
    raise AssertionError("the two processes never came to the lock")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of `sql/` that a test may change."""
    return shutil.copytree(migrations.FOLDER, tmp_path / "sql")


def test_a_wrong_file_is_named_and_leaves_nothing_of_itself(
    database_url: str, folder: Path
) -> None:
    (folder / "0002_good.sql").write_text("create table public.good (id int);")
    (folder / "0003_wrong.sql").write_text(
        "create table public.half (id int); select * from public.nowhere;"
    )
    (folder / "0004_later.sql").write_text("create table public.later (id int);")
    before = described(database_url).keys()

    with pytest.raises(migrations.MigrationFailed, match=r"0003_wrong\.sql.*nowhere"):
        migrations.apply_migrations(database_url, folder=folder)

    missing = ["0003_wrong.sql", "0004_later.sql"]
    assert migrations.pending_steps(database_url, folder=folder) == missing
    came = described(database_url).keys() - before
    assert {name.split(".")[1] for name in came if name.startswith("table ")} == {"good"}

    (folder / "0003_wrong.sql").write_text("create table public.corrected (id int);")
    assert migrations.apply_migrations(database_url, folder=folder) == missing


def test_a_numbered_file_may_include_functions_that_it_needs(
    database_url: str, folder: Path
) -> None:
    (folder / "functions" / "moods.sql").write_text(
        "create or replace function public.mood() returns trigger language plpgsql"
        " set search_path = pg_catalog, pg_temp as $$ begin return new; end $$;"
    )
    (folder / "0002_moods.sql").write_text(
        "\\ir functions/moods.sql\n"
        "create trigger mood before insert on public.chats for each row execute function mood();"
    )

    migrations.apply_migrations(database_url, folder=folder)

    assert "trigger public.chats.mood" in described(database_url)


def test_two_files_with_one_number_are_refused(folder: Path) -> None:
    (folder / "0002_this.sql").write_text("")
    (folder / "0002_that.sql").write_text("")

    with pytest.raises(ValueError, match="share a number"):
        migrations.read_numbered(folder)


def test_a_step_gives_way_and_tries_again_while_a_transaction_holds_its_table(
    database_url: str, folder: Path
) -> None:
    (folder / "0002_column.sql").write_text("alter table public.chats add column mood text;")
    lines: list[str] = []
    with (
        psycopg.connect(database_url, application_name="a backup") as reader,
        psycopg.connect(database_url, autocommit=True) as other,
        ThreadPoolExecutor() as pool,
    ):
        reader.execute("select from public.chats")
        step = pool.submit(
            migrations.apply_migrations, database_url, folder=folder, report=lines.append
        )
        eventually(lambda: len(lines) > 1, what="the step waits")
        waited = max(_seconds(other, "select from public.chats") for _ in range(40))
        reader.rollback()
        assert step.result(30)[0] == "0002_column.sql"

    assert waited < 0.6
    assert re.fullmatch(
        r"0002_column\.sql waits for chats, held by process \d+ \(a backup\) for \d+ s", lines[1]
    ), lines


def test_a_step_gives_up_when_its_time_is_over(
    database_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "_PATIENCE_S", 0.1)
    (folder / "0002_column.sql").write_text("alter table public.chats add column mood text;")
    with psycopg.connect(database_url) as reader:
        reader.execute("select from public.chats")
        with pytest.raises(migrations.MigrationFailed, match=r"waits for chats, held .*: end that"):
            migrations.apply_migrations(database_url, folder=folder)

    assert "0002_column.sql" in migrations.pending_steps(database_url, folder=folder)


def _seconds(connection: psycopg.Connection, statement: str) -> float:
    started = time.monotonic()
    connection.execute(statement.encode())
    time.sleep(0.05)
    return time.monotonic() - started


def test_the_database_of_a_trial_is_refused_and_left_as_it_is(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "update feishu_bot.migrations set name = '0001_baseline.sql' where name = 'schema.sql'"
        )
    before = described(database_url)

    with pytest.raises(migrations.TrialDatabase, match=r"start afresh .* scripts/restore there"):
        migrations.apply_migrations(database_url)
    with pytest.raises(migrations.TrialDatabase):
        migrations.pending_steps(database_url)

    assert described(database_url) == before


@pytest.fixture
def hosted_url(postgres_server: Server, migrated_template: str) -> Iterator[str]:
    """As on hosted Supabase: the API's roles exist, the owner is no superuser, and the default
    privileges grant everything in `public` to those roles."""
    owner = f"hosted_{uuid.uuid4().hex[:8]}"
    postgres_server.execute(_create_owner(owner))
    for role in ROLES:
        postgres_server.execute(
            sql.SQL("grant {} to {}").format(*map(sql.Identifier, (role, owner)))
        )
    try:
        with postgres_server.fresh_database(owner=owner) as url:
            with psycopg.connect(url, autocommit=True) as connection:
                for kind in ("tables", "functions", "sequences"):
                    connection.execute(
                        f"alter default privileges in schema public grant all on {kind}"
                        f" to {', '.join(ROLES[:3])}".encode()
                    )
            yield url
    finally:
        postgres_server.execute(sql.SQL("drop role {}").format(sql.Identifier(owner)))


def test_hosted_supabase_accepts_the_files_without_a_superuser(hosted_url: str) -> None:
    migrations.apply_migrations(hosted_url)

    assert migrations.pending_steps(hosted_url) == []
    assert acts_as(hosted_url) == list(ROLES[1:])


def test_what_hosted_supabase_grants_to_anon_by_default_is_taken_back(hosted_url: str) -> None:
    migrations.apply_migrations(hosted_url)

    with psycopg.connect(hosted_url) as connection:
        tables = connection.execute("""
            select relname from pg_class c
            where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v')
              and has_table_privilege('anon', c.oid, 'select, insert, update, delete, truncate')
        """).fetchall()
        functions = connection.execute("""
            select proname from pg_proc p
            where pronamespace = 'public'::regnamespace
              and has_function_privilege('anon', p.oid, 'execute')
        """).fetchall()
    assert (tables, functions) == ([], [])


def test_a_server_without_the_roles_gets_them_from_an_owner_who_is_no_superuser() -> None:
    server = start_server()
    server.execute(_create_owner("owner"))
    with server.fresh_database(owner="owner") as url:
        migrations.apply_migrations(url)

        assert acts_as(url) == list(ROLES[1:])


def test_an_owner_without_privileges_is_told_what_a_superuser_has_to_run() -> None:
    server = start_server()
    server.execute("create role plain login nosuperuser")
    with server.fresh_database(owner="plain") as url:
        [statement] = statements_for_a_superuser(server, url)

        assert "bypassrls" in statement
        assert "create role bot_console" in statement
        assert acts_as(url) == list(ROLES[1:])


def test_a_service_role_that_policies_hold_for_is_refused_and_the_statement_named() -> None:
    server = start_server()
    for statement in (
        "create role anon nologin",
        "create role authenticated nologin",
        "create role service_role nologin nobypassrls",
        "create role bot_console nologin",
        "create role bot_verifier nologin",
        "create role plain login nosuperuser",
        "grant authenticated, service_role, bot_console, bot_verifier to plain",
    ):
        server.execute(statement)
    with server.fresh_database(owner="plain") as url:
        with pytest.raises(migrations.MigrationFailed) as refused:
            migrations.apply_migrations(url)
        sentence = str(refused.value)
        assert sentence.startswith("service_role may not step over row-level security")

        server.execute(sentence.rsplit(": ", 1)[1])
        migrations.apply_migrations(url)
        assert migrations.pending_steps(url) == []


def test_what_a_newer_version_has_applied_is_named(database_url: str) -> None:
    assert migrations.newer_steps(database_url) == []
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("insert into feishu_bot.migrations (name) values ('9990_new.sql')")
        connection.execute("insert into feishu_bot.migrations (name) values ('functions fed0')")

    assert migrations.newer_steps(database_url) == ["9990_new.sql"]


def acts_as(url: str) -> list[str]:
    """The roles the owner of the database can take, for the length of a transaction."""
    taken = []
    for role in ROLES[1:]:
        with psycopg.connect(url) as connection:
            connection.execute("select set_config('role', %s, true)", [role])
            taken.extend(connection.execute("select current_user").fetchone() or ())
    return taken


def described(url: str) -> dict[str, str]:
    with psycopg.connect(url) as connection:
        return definitions(connection)


def _create_owner(name: str) -> sql.Composed:
    statement = "create role {} login nosuperuser createrole createdb bypassrls"
    return sql.SQL(statement).format(sql.Identifier(name))
