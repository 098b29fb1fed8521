"""Row-level security, actor by actor and table by table: what each can do, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from memory import migrations
from tests.support.access import SENDER, Case
from tests.support.access_rules import CASES
from tests.support.actors import ACTORS, ALICE, BOB, THERE, succeeds
from tests.support.postgres import Server

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.fixture(scope="module")
def world(postgres_server: Server) -> Iterator[psycopg.Connection]:
    """Alice's rows, in a database that grants as freely as hosted Supabase does by default."""
    with (
        postgres_server.fresh_database() as url,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        migrations.apply(url)
        connection.execute(
            "grant all on all tables in schema public to anon, authenticated, service_role"
        )
        for case in CASES:
            if case.seeded:
                connection.execute(*case.inserting(case.row, ALICE))
        yield connection


def test_every_table_has_cases(world: psycopg.Connection) -> None:
    tables = world.execute(
        "select relname from pg_class"
        " where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')"
    )

    assert {name for (name,) in tables} == {case.table for case in CASES}, (
        "append the missing table's Case to tests/support/access_rules.py"
    )


@every_case
def test_who_can_read(world: psycopg.Connection, case: Case) -> None:
    able = {name for name, actor in ACTORS.items() if succeeds(world, actor, case.selecting)}

    assert able == case.select


@every_case
def test_who_can_insert(world: psycopg.Connection, case: Case) -> None:
    able = {
        name
        for name, actor in ACTORS.items()
        if succeeds(world, actor, *case.inserting(case.new, actor.sender))
    }

    assert able == case.insert


@every_case
def test_who_can_update(world: psycopg.Connection, case: Case) -> None:
    able = {
        name
        for name, actor in ACTORS.items()
        if succeeds(world, actor, *case.updating(case.change))
    }

    assert able == case.update


@every_case
def test_who_can_delete(world: psycopg.Connection, case: Case) -> None:
    able = {name for name, actor in ACTORS.items() if succeeds(world, actor, case.deleting)}

    assert able == case.delete


@every_case
def test_nobody_gives_a_row_away(world: psycopg.Connection, case: Case) -> None:
    able = {
        name
        for name, actor in ACTORS.items()
        for gift in case.gifts
        if succeeds(world, actor, *case.updating(gift))
    }

    assert able <= {"service"}


@pytest.mark.parametrize(
    "case", [case for case in CASES if SENDER in case.new.values()], ids=lambda case: case.name
)
def test_nobody_writes_in_the_name_of_another_sender(world: psycopg.Connection, case: Case) -> None:
    somebody_else = {ALICE: BOB, BOB: ALICE}
    able = {
        name
        for name, actor in ACTORS.items()
        if succeeds(world, actor, *case.inserting(case.new, somebody_else[actor.sender]))
    }

    assert able == {"service"}


@every_case
def test_a_sender_moves_no_row_to_another_chat(world: psycopg.Connection, case: Case) -> None:
    if "chat_id" not in case.row:
        assert not succeeds(world, ACTORS["sender here"], *case.updating(case.change))
        return

    for name in ("sender here", "sender elsewhere"):
        assert not succeeds(world, ACTORS[name], *case.updating({"chat_id": THERE}))


def test_a_sender_makes_no_thread_memory_follow_the_person_everywhere(
    world: psycopg.Connection,
) -> None:
    [case] = [case for case in CASES if case.name == "agent_working_memory, of a conversation"]
    personal = {"scope": "user", "conversation_id": "", "chat_id": ""}

    assert not succeeds(world, ACTORS["sender here"], *case.updating(personal))
    assert succeeds(world, ACTORS["subject here"], *case.updating(personal))


def test_no_token_reaches_the_queue(world: psycopg.Connection) -> None:
    reachable = world.execute("""
        select c.relname, r.role, p.privilege
        from pg_class c,
             unnest(array['anon', 'authenticated']) as r (role),
             unnest(array['select', 'insert', 'update', 'delete', 'truncate']) as p (privilege)
        where c.relnamespace = 'feishu_bot'::regnamespace and c.relkind in ('r', 'p')
          and has_table_privilege(r.role, c.oid, p.privilege)
    """)

    assert reachable.fetchall() == []
