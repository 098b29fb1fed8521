"""Functions stand once in `sql/functions/`, are applied together when they change, and may be
called by whom `sql/access.sql` says."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from memory import migrations
from tests.support.schema import definitions
from tests.support.sql_files import access, functions_of

SCHEMA = migrations.FOLDER / migrations.WHOLE_SCHEMA
FILES = sorted((migrations.FOLDER / "functions").glob("*.sql"))
NAME = migrations.read_functions().name
CARD_BLOCK = "as $$ select 10000 $$"
GRANTED = {
    "of_a_turn": {"authenticated", "service_role"},
    "of_functions": {"authenticated", "service_role"},
    "of_the_service": {"service_role"},
    "of_origins": {"authenticated", "service_role", "bot_console"},
    "of_taking_back": {"service_role"},
    "of_triggers": set(),
    "of_the_owner": set(),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of `sql/` that a test may change."""
    return shutil.copytree(migrations.FOLDER, tmp_path / "sql")


def rewrite(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


def functions_in(connection: psycopg.Connection) -> list[str]:
    """Functions of our schemas, but for those of extensions."""
    rows = connection.execute("""
        select p.pronamespace::regnamespace || '.' || p.proname from pg_proc p
        where p.pronamespace::regnamespace::text in ('public', 'bot_private', 'feishu_bot')
          and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
    """)
    return [name for (name,) in rows]


def callers(connection: psycopg.Connection) -> dict[str, set[str]]:
    """Who but its owner may call each function; everybody is `public`."""
    rows = connection.execute("""
        select p.pronamespace::regnamespace || '.' || p.proname,
               array(select case a.grantee when 0 then 'public' else a.grantee::regrole::text end
                     from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
                     where a.grantee <> p.proowner)
        from pg_proc p
        where p.pronamespace::regnamespace::text in ('public', 'bot_private', 'feishu_bot')
    """)
    may = {name: set(roles) for name, roles in rows}
    return {name: may[name] for name in functions_in(connection)}


def listed() -> dict[str, set[str]]:
    return {name: GRANTED[who] for who, names in access().items() for name in names}


def card_block(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("select bot_private.card_block()").fetchone()
    assert row is not None
    return int(row[0])


def test_every_function_is_defined_once() -> None:
    assert [name for name, times in Counter(functions_of(FILES)).items() if times > 1] == []


def test_the_schema_includes_every_file_of_functions_once() -> None:
    included = re.findall(r"^\\ir functions/(\S+)$", SCHEMA.read_text(), re.MULTILINE)

    assert sorted(included) == [file.name for file in FILES]


def test_every_policy_is_found_by_its_name(database: psycopg.Connection) -> None:
    text = "\n".join(file.read_text() for file in [SCHEMA, *FILES])
    written = Counter(re.findall(r"create policy (\w+)\s", text))
    names = Counter(
        name
        for (name,) in database.execute(
            "select polname from pg_policy"
            " where polroles <> array['bot_verifier'::regrole::oid]"  # let_verifier_read makes them
        )
    )

    assert written == names


def test_the_functions_of_the_database_are_those_of_the_files(
    database: psycopg.Connection,
) -> None:
    in_files = sorted(functions_of(FILES))
    assert sorted(functions_in(database)) == in_files

    with database.transaction(force_rollback=True):
        database.execute("create function public.stray() returns integer language sql return 1")
        assert sorted(functions_in(database)) != in_files


def test_everybody_may_call_what_the_list_says_and_nothing_else(
    database: psycopg.Connection,
) -> None:
    assert callers(database) == listed()

    with database.transaction(force_rollback=True):
        database.execute("grant execute on function public.forget_person to authenticated")
        assert callers(database) != listed()


def test_every_function_stands_in_one_list() -> None:
    names = [name for names in access().values() for name in names]

    assert sorted(names) == sorted(functions_of(FILES))


def test_a_function_that_is_in_no_list_is_seen(database: psycopg.Connection) -> None:
    with database.transaction(force_rollback=True):
        database.execute("create function public.stray() returns integer language sql return 1")

        assert callers(database).keys() - listed().keys() == {"public.stray"}


def test_a_changed_function_is_applied_and_nothing_else(database_url: str, folder: Path) -> None:
    rewrite(folder / "functions" / "cards.sql", CARD_BLOCK, "as $$ select 20000 $$")
    changed = migrations.read_functions(folder).name

    assert migrations.pending_steps(database_url, folder=folder) == [changed]
    assert migrations.apply_migrations(database_url, folder=folder) == [changed]

    assert card_block(database_url) == 20000
    assert migrations.pending_steps(database_url, folder=folder) == []


def test_unchanged_functions_are_not_applied_again(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "create or replace function bot_private.card_block() returns integer"
            " language sql immutable set search_path = '' as 'select 1'"
        )

    assert migrations.apply_migrations(database_url) == []
    assert card_block(database_url) == 1


def test_functions_go_back_with_the_code(database_url: str, folder: Path) -> None:
    rewrite(folder / "functions" / "cards.sql", CARD_BLOCK, "as $$ select 20000 $$")
    migrations.apply_migrations(database_url, folder=folder)

    assert migrations.apply_migrations(database_url) == [NAME]
    assert card_block(database_url) == 10000


def test_a_function_that_moves_to_a_narrower_list_loses_what_it_had(
    database_url: str, folder: Path
) -> None:
    rewrite(folder / "access.sql", "recall_message, replace_message", "replace_message")
    rewrite(folder / "access.sql", "public.enable_vectors", "public.recall_message")
    migrations.apply_migrations(database_url, folder=folder)

    with psycopg.connect(database_url) as connection:
        assert callers(connection)["public.recall_message"] == set()


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        ("as $$ select 20000 $$; creat function", "syntax error"),
        ("as $$ selec 20000 $$", "syntax error"),
        ("as $$ select size from public.nowhere $$", "nowhere"),
        ("as $$ select public.nothing() $$", "nothing"),
    ],
)
def test_a_broken_function_is_named_and_leaves_everything_as_it_was(
    database_url: str, folder: Path, broken: str, found: str
) -> None:
    # the files before it in the transaction are sound and would change something
    rewrite(folder / "functions" / "buttons.sql", "'verdict', 'expired'", "'verdict', 'late'")
    rewrite(folder / "functions" / "cards.sql", CARD_BLOCK, broken)
    with psycopg.connect(database_url) as connection:
        before = definitions(connection)

    with pytest.raises(migrations.MigrationFailed, match=rf"(?s)functions/cards\.sql.*{found}"):
        migrations.apply_migrations(database_url, folder=folder)

    with psycopg.connect(database_url) as connection:
        assert definitions(connection) == before
    assert migrations.pending_steps(database_url) == []


def test_a_signature_changes_in_one_step_and_old_callers_are_answered(
    database_url: str, folder: Path
) -> None:
    rewrite(
        folder / "functions" / "people.sql",
        "create or replace function public.count_people(p_unlinked boolean) returns bigint",
        "drop function if exists public.count_people(boolean);\n"
        "create or replace function public.count_people(\n"
        "  p_unlinked boolean, p_named boolean default false\n) returns bigint",
    )

    migrations.apply_migrations(database_url, folder=folder)

    with psycopg.connect(database_url) as connection:
        assert functions_in(connection).count("public.count_people") == 1
        assert callers(connection) == listed()
        old_call = "select public.count_people(p_unlinked => false)"
        assert connection.execute(old_call).fetchone() == (0,)


def test_a_second_function_of_one_name_is_refused(database_url: str, folder: Path) -> None:
    rewrite(
        folder / "functions" / "people.sql",
        "public.count_people(p_unlinked boolean)",
        "public.count_people(p_unlinked boolean, p_named boolean default false)",
    )

    with pytest.raises(migrations.MigrationFailed, match=r"count_people.*not unique"):
        migrations.apply_migrations(database_url, folder=folder)


def test_functions_are_replaced_while_a_turn_is_being_written(
    database_url: str, folder: Path
) -> None:
    rewrite(folder / "functions" / "cards.sql", CARD_BLOCK, "as $$ select 20000 $$")
    with psycopg.connect(database_url) as turn:
        turn.execute(
            "insert into agent_chats (id, user_id, chat_id, root_id)"
            " values ('feishu:oc:om', 'u', 'oc', 'om')"
        )
        turn.execute("delete from agent_messages where id = 0")
        turn.execute("delete from agent_working_memory where id = 0")
        lines: list[str] = []
        migrations.apply_migrations(database_url, folder=folder, report=lines.append)

    assert lines == [f"applying {migrations.read_functions(folder).name}"]


def test_what_every_mention_calls_is_planned_once(database: psycopg.Connection) -> None:
    left_to_guess = database.execute("""
        select f from unnest(array['public.begin_turn', 'public.record_reply',
          'public.mark_sent', 'feishu_bot.enqueue', 'feishu_bot.end_and_take']) f
        where not exists (select from pg_proc p where p.oid = f::regproc
                          and 'plan_cache_mode=force_generic_plan' = any (p.proconfig))
    """).fetchall()

    assert left_to_guess == []


def test_nothing_that_the_bot_calls_is_compiled(database: psycopg.Connection) -> None:
    lists = access()
    called = {*lists["of_a_turn"], *lists["of_the_service"], *lists["of_the_owner"]}
    compiled = database.execute(
        "select f from unnest(%s::text[]) f join pg_proc p on p.oid = f::regproc"
        " where p.provolatile <> 'i' and p.prosqlbody is null and p.proname <> 'enable_vectors'"
        " and 'jit=off' <> all (coalesce(p.proconfig, '{}'))",
        [sorted(called)],
    ).fetchall()

    assert compiled == []


def test_functions_of_somebody_else_stay_as_they_are(database_url: str, folder: Path) -> None:
    rewrite(folder / "functions" / "cards.sql", CARD_BLOCK, "as $$ select 20000 $$")
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "create function public.stray() returns integer"
            " language sql set search_path = '' return 1"
        )
        migrations.apply_migrations(database_url, folder=folder)
        settings = connection.execute("select proconfig from pg_proc where proname = 'stray'")

        assert settings.fetchone() == (['search_path=""'],)
