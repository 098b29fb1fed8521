"""Who verifies a receipt reads every column that can hold words, and finds what stands there."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from scripts.operating.survivors import (
    DeletedWords,
    SurvivorSearch,
    as_verifier,
    search_database,
    search_files,
)
from tests.support.places_of_words import COLUMNS, PLACES, UNREAD

TEXT = "the gym code is Porto 4471"
ASKED = "om_retracted"


@pytest.fixture
def database(database_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


def searched(database: psycopg.Connection, wanted: DeletedWords | None = None) -> SurvivorSearch:
    search = SurvivorSearch(wanted or DeletedWords((TEXT,), frozenset({ASKED}), is_retraction=True))
    with as_verifier(database):
        search_database(database, search)
    return search


def test_every_column_that_can_hold_words_says_how_it_is_deleted(
    database: psycopg.Connection,
) -> None:
    columns = {f"{table}.{column}" for table, column, _ in database.execute(COLUMNS).fetchall()}
    assert columns - set(PLACES) == set(), "add these to tests/support/places_of_words.py"
    assert set(PLACES) - columns == set(), "these columns are gone"


def test_a_new_column_is_noticed(database: psycopg.Connection) -> None:
    database.execute("alter table public.agent_turns add column remark text")
    columns = {f"{table}.{column}" for table, column, _ in database.execute(COLUMNS).fetchall()}
    assert columns - set(PLACES) == {"public.agent_turns.remark"}


def test_a_survivor_is_found_in_every_column_that_can_hold_words(
    database: psycopg.Connection,
) -> None:
    """Each column in turn gets a row with the words in that column alone."""
    lift_constraints(database)
    missed, planted = [], 0
    for table, column, kind in database.execute(COLUMNS).fetchall():
        if f"{table}.{column}" in UNREAD:
            continue
        plant(database, table, column, kind)
        found = {(one.place, one.column) for one in searched(database).survivors}
        if (table, column) not in found or {place for place, _ in found} != {table}:
            missed.append((table, column, found))
        planted += 1
        database.execute(sql.SQL("delete from {}").format(sql.Identifier(*table.split("."))))
    assert missed == []
    assert planted >= 20


@pytest.mark.parametrize(
    "said",
    [
        "THE GYM  CODE is porto 4471!",
        "“the gym code is Ｐorto ４４７１”",
        "x: the gym\ncode is Porto 4471",
    ],
)
def test_other_spacing_width_and_case_are_the_same_words(said: str) -> None:
    assert DeletedWords((TEXT,)).stands_in(said)


@pytest.mark.parametrize("said", ["the gym code is Porto 44710", "bathe gym code is Porto 4471"])
def test_part_of_another_word_is_not_the_same(said: str) -> None:
    assert not DeletedWords((TEXT,)).stands_in(said)


def test_words_in_files_and_logs_are_found_and_the_servers_own_are_left_out(
    tmp_path: Path,
) -> None:
    data, log = tmp_path / "data", tmp_path / "bot.log"
    (data / "postgres").mkdir(parents=True)
    (data / "postgres" / "1259").write_text(TEXT)
    (data / "kept.json").write_text(f'{{"a": "{TEXT}"}}')
    log.write_text(f"nothing\n{TEXT}\n")
    search = SurvivorSearch(DeletedWords((TEXT,)))

    search_files(data, [log], search)

    assert [one.place for one in search.survivors] == [str(data / "kept.json"), str(log)]


def test_what_recall_knows_of_messages_that_are_gone_is_found(
    database: psycopg.Connection,
) -> None:
    database.execute(
        "insert into bot_private.turn_words (first_id, place, thread, asked_at, length, words)"
        " values (4471, 1, 1, now(), 1, '{1}')"
    )
    [survivor] = searched(database).survivors
    assert (survivor.place, "4471" in survivor.row) == ("bot_private.turn_words", True)


def test_who_verifies_can_write_nothing_and_reads_no_key(database: psycopg.Connection) -> None:
    for statement in (
        "select * from bot_private.source_key",
        "select sealed from bot_private.user_token_seals",
        "select terms from bot_private.source_terms",
        "select salt from public.agent_receipts",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege), as_verifier(database):
            database.execute(statement.encode())
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction), as_verifier(database):
        database.execute("delete from public.chat_transcript")
    row = database.execute(
        "select rolbypassrls or rolsuper or rolcanlogin from pg_roles"
        " where rolname = 'bot_verifier'"
    ).fetchone()
    assert row == (False,)


def test_honest_histories_in_which_colleagues_repeat_each_other_have_no_survivor() -> None:
    """500 histories: what one person retracted others said too, and answers and facts tell it."""
    for seed in range(500):
        search = SurvivorSearch(DeletedWords((TEXT,), frozenset({ASKED}), is_retraction=True))
        for table, row in honest_history(random.Random(seed)):
            search.read_row(table, row)
        assert search.survivors == [], seed
        assert search.elsewhere


def test_what_stands_under_the_id_of_the_retracted_message_survived_whoever_said_it_too() -> None:
    search = SurvivorSearch(DeletedWords((TEXT,), frozenset({ASKED}), is_retraction=True))
    for table, row in honest_history(random.Random(1)):
        search.read_row(table, row)
    note = {"id": "n1", "turn_id": ASKED, "title": "Gym", "body": TEXT}
    search.read_row("public.agent_notes", note)
    assert [str(one) for one in search.survivors] == ["public.agent_notes.body (id n1)"]


def honest_history(chance: random.Random) -> list[tuple[str, dict[str, object]]]:
    """Rows after a retraction in a chat where at least one colleague said the same."""
    rows: list[tuple[str, dict[str, object]]] = []
    for number in range(chance.randint(1, 5)):
        turn = f"om_colleague{number}"
        said = chance.choice([TEXT, TEXT.upper(), f"As I said: {TEXT}.", f"{TEXT} (Bob)"])
        answer = {"turn_id": turn, "message_id": f"om_card{number}"}
        rows += [
            ("public.agent_messages", {"turn_id": turn, "role": "user", "content": said}),
            (
                "public.chat_transcript",
                {"message_id": turn, "root_id": ASKED, "is_bot": False, "content": said},
            ),
            ("public.imported_messages", {"message_id": f"om_old{number}", "content": said}),
        ][: chance.randint(1, 3)]
        rows += [
            ("public.agent_messages", {**answer, "role": "assistant", "content": f"Yes, {said}"}),
            (
                "public.agent_working_memory",
                {"content": {"gym": said}, "sources": {"gym": {"turn": turn, "replaces": [ASKED]}}},
            ),
            ("public.agent_notes", {"turn_id": turn, "title": "Gym", "body": said}),
            ("public.agent_summaries", {"content": f"They said: {said}"}),
            (
                "feishu_bot.jobs",
                {"args": {"event": {"message_id": turn, "root_id": ASKED, "text": said}}},
            ),
        ][: chance.randint(0, 5)]
    chance.shuffle(rows)
    return rows


def lift_constraints(database: psycopg.Connection) -> None:
    """A row may then hold one column alone: in a database of the test's own."""
    database.execute("set session_replication_role = replica")
    for kinds in ("'f'", "'p', 'u', 'x', 'c'"):
        query = f"""
            select c.conrelid::regclass::text, c.conname from pg_constraint c
            where c.connamespace::regnamespace::text in ('public', 'bot_private', 'feishu_bot')
              and c.contype in ({kinds}) and c.conrelid <> 0
        """
        for table, name in database.execute(query.encode()).fetchall():
            database.execute(f'alter table {table} drop constraint "{name}" cascade'.encode())
    query = """
        select a.attrelid::regclass::text, a.attname from pg_attribute a
        join pg_class c on c.oid = a.attrelid and c.relkind = 'r'
        where c.relnamespace::regnamespace::text in ('public', 'bot_private', 'feishu_bot')
          and a.attnum > 0 and a.attnotnull and not a.attisdropped and a.attidentity = ''
    """
    for table, name in database.execute(query.encode()).fetchall():
        database.execute(f'alter table {table} alter column "{name}" drop not null'.encode())


def plant(database: psycopg.Connection, table: str, column: str, kind: str) -> None:
    """A row of `table` whose `column` alone holds the words."""
    value = {
        "text": "%(text)s::text",
        "text[]": "array[%(text)s::text]",
        "json": "json_build_object('deep', json_build_array(%(text)s::text))",
        "jsonb": "jsonb_build_object('deep', jsonb_build_array(%(text)s::text))",
        "jsonb[]": "array[to_jsonb(%(text)s::text)]",
    }[kind]
    statement = f'insert into {table} ("{column}") values ({value})'
    database.execute(statement.encode(), {"text": TEXT})
