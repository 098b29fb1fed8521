"""Migrations: from blank, again, at once, without a superuser, and when a file is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from memory import migrations
from tests.support.postgres import Server, database_name, start_server, statements_for_a_superuser

ROOT = Path(__file__).parents[3]
FILES = [file.name for file in sorted((ROOT / "sql").glob("[0-9]*.sql"))]
FUNCTIONS = migrations.read_functions().name
BACKFILLS = [f"backfills/{file.name}" for file in sorted((ROOT / "sql/backfills").glob("*.sql"))]
STEPS = [*FILES, FUNCTIONS, *BACKFILLS]
ROLES = ("anon", "authenticated", "service_role", "bot_console")

_APPLY = """
import json, sys
from memory import migrations
print(json.dumps(migrations.apply(sys.argv[1])))
"""


def test_a_blank_database_gets_tables_then_functions_then_backfills(
    blank_database_url: str,
) -> None:
    assert migrations.pending(blank_database_url) == STEPS

    applied = migrations.apply(blank_database_url)

    assert applied == STEPS
    assert migrations.pending(blank_database_url) == []


def test_the_second_time_nothing_is_applied_and_nothing_changes(blank_database_url: str) -> None:
    migrations.apply(blank_database_url)
    before = schema(blank_database_url)

    assert migrations.apply(blank_database_url) == []
    assert schema(blank_database_url) == before
    assert before["agent_messages.content"] == "text not null"


def test_every_step_is_reported_while_it_runs(blank_database_url: str) -> None:
    lines: list[str] = []

    migrations.apply(blank_database_url, report=lines.append)

    assert lines[: len(STEPS)] == [f"applying {name}" for name in STEPS]


def test_what_has_to_be_done_before_a_file_is_said_where_there_is_somebody_to_do_it(
    blank_database_url: str, tmp_path: Path
) -> None:
    (tmp_path / "0001_first.sql").write_text("create table first ()")
    lines: list[str] = []
    migrations.apply(blank_database_url, folder=tmp_path, report=lines.append)
    warned = "-- Purpose: p.\n-- Before this: stop the workers.\ncreate table second ()"
    (tmp_path / "0002_second.sql").write_text(warned)

    assert migrations.warnings(blank_database_url, folder=tmp_path) == ["stop the workers."]
    migrations.apply(blank_database_url, folder=tmp_path, report=lines.append)
    assert lines[-2:] == ["stop the workers.", "applying 0002_second.sql"]
    assert migrations.warnings(blank_database_url, folder=tmp_path) == []


def test_a_blank_database_is_warned_of_nothing(blank_database_url: str) -> None:
    assert migrations.warnings(blank_database_url) == []


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
    assert second == STEPS


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


def test_a_wrong_file_is_named_and_leaves_nothing_of_itself(
    blank_database_url: str, tmp_path: Path
) -> None:
    (tmp_path / "0001_good.sql").write_text("create table public.good (id int);")
    (tmp_path / "0002_wrong.sql").write_text(
        "create table public.half (id int); select * from public.nowhere;"
    )
    (tmp_path / "0003_later.sql").write_text("create table public.later (id int);")

    with pytest.raises(migrations.MigrationFailed, match=r"0002_wrong\.sql.*nowhere"):
        migrations.apply(blank_database_url, folder=tmp_path)

    assert migrations.pending(blank_database_url, folder=tmp_path) == [
        "0002_wrong.sql",
        "0003_later.sql",
    ]
    assert {name.split(".")[0] for name in schema(blank_database_url)} == {"good"}


@pytest.mark.usefixtures("migrated_template")  # the roles are there
def test_a_corrected_file_is_applied_and_the_others_are_not_applied_again(
    blank_database_url: str, tmp_path: Path
) -> None:
    (tmp_path / "0001_good.sql").write_text("create table public.good (id int);")
    (tmp_path / "0002_wrong.sql").write_text("select 1/0;")
    with pytest.raises(migrations.MigrationFailed):
        migrations.apply(blank_database_url, folder=tmp_path)

    (tmp_path / "0002_wrong.sql").write_text("create table public.corrected (id int);")

    assert migrations.apply(blank_database_url, folder=tmp_path) == ["0002_wrong.sql"]


def test_batches_that_were_interrupted_keep_what_is_done_and_start_again(
    blank_database_url: str, tmp_path: Path
) -> None:
    (tmp_path / "0001_good.sql").write_text("create table public.good (id int);")
    (tmp_path / "backfills").mkdir()
    file = tmp_path / "backfills" / "0002_rows.batches.sql"
    first = "do $$ begin insert into public.good values (1); commit; perform 1/{}; end $$"
    file.write_text(first.format(0))
    with pytest.raises(migrations.MigrationFailed, match="0002_rows"):
        migrations.apply(blank_database_url, folder=tmp_path)
    with psycopg.connect(blank_database_url) as connection:
        assert connection.execute("select count(*) from public.good").fetchone() == (1,)

    file.write_text(first.format(1))

    assert migrations.apply(blank_database_url, folder=tmp_path) == [f"backfills/{file.name}"]
    assert migrations.apply(blank_database_url, folder=tmp_path) == []


def test_two_files_with_one_number_are_refused(tmp_path: Path) -> None:
    (tmp_path / "0001_this.sql").write_text("")
    (tmp_path / "0001_that.sql").write_text("")

    with pytest.raises(ValueError, match="share a number"):
        migrations.read_folder(tmp_path)


def test_files_that_are_not_numbered_are_not_migrations(tmp_path: Path) -> None:
    (tmp_path / "0001_this.sql").write_text("select 1;")
    (tmp_path / "notes.md").write_text("")
    (tmp_path / "seed.sql").write_text("")

    assert [step.name for step in migrations.read_folder(tmp_path)] == ["0001_this.sql"]


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
    migrations.apply(hosted_url)

    assert migrations.pending(hosted_url) == []
    assert acts_as(hosted_url) == list(ROLES[1:])


def test_what_hosted_supabase_grants_to_anon_by_default_is_taken_back(hosted_url: str) -> None:
    migrations.apply(hosted_url)

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
        migrations.apply(url)

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
        "create role plain login nosuperuser",
        "grant authenticated, service_role, bot_console to plain",
    ):
        server.execute(statement)
    with server.fresh_database(owner="plain") as url:
        with pytest.raises(migrations.MigrationFailed) as refused:
            migrations.apply(url)
        sentence = str(refused.value)
        assert sentence.startswith("service_role may not step over row-level security")

        server.execute(sentence.rsplit(": ", 1)[1])
        migrations.apply(url)
        assert migrations.pending(url) == []


def test_what_a_newer_version_has_applied_is_named(database_url: str) -> None:
    assert migrations.ahead(database_url) == []
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("insert into feishu_bot.migrations (name) values ('9990_new.sql')")
        connection.execute("insert into feishu_bot.migrations (name) values ('functions fed0')")
        connection.execute("insert into feishu_bot.migrations (name) values ('0006_gone.sql')")

    assert migrations.ahead(database_url) == ["9990_new.sql"]


def acts_as(url: str) -> list[str]:
    """The roles the owner of the database can take, for the length of a transaction."""
    taken = []
    for role in ROLES[1:]:
        with psycopg.connect(url) as connection:
            connection.execute("select set_config('role', %s, true)", [role])
            taken.extend(connection.execute("select current_user").fetchone() or ())
    return taken


def schema(url: str) -> dict[str, str]:
    """Columns, constraints, policies, indexes and functions of `public`, by name."""
    with psycopg.connect(url) as connection:
        rows = connection.execute("""
            select c.relname || '.' || a.attname,
                   format_type(a.atttypid, a.atttypmod) || case when a.attnotnull then ' not null'
                                                           else '' end
            from pg_attribute a join pg_class c on c.oid = a.attrelid
            where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and a.attnum > 0
            union all
            select c.relname || '!' || conname, pg_get_constraintdef(k.oid)
            from pg_constraint k join pg_class c on c.oid = k.conrelid
            where c.relnamespace = 'public'::regnamespace
            union all
            select tablename || '?' || policyname, concat(cmd, roles, qual, with_check)
            from pg_policies where schemaname = 'public'
            union all
            select indexname, indexdef from pg_indexes where schemaname = 'public'
            union all
            select oid::regprocedure::text, md5(pg_get_functiondef(oid)) || proacl::text
            from pg_proc where pronamespace = 'public'::regnamespace and prokind = 'f'
        """)
        return dict(rows.fetchall())


def _create_owner(name: str) -> sql.Composed:
    statement = "create role {} login nosuperuser createrole createdb bypassrls"
    return sql.SQL(statement).format(sql.Identifier(name))
