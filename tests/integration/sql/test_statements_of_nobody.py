"""A statement of a token without claims is answered at once, however many rows there are.

`ATTACK_ROWS` says how many each table has.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from memory import migrations
from tests.support.access_rules import TABLES, VIEWS
from tests.support.attacks import seed
from tests.support.costs import plan_of
from tests.support.crowds import copy_rows
from tests.support.postgres import Server

FEW = 2000  # among very many the planner finds an index that it would not take among these
ROWS = int(os.environ.get("ATTACK_ROWS", FEW))
MOST_MS = 100
SIGNED_IN = {"sub": "6f1d2c5e-0b6a-5f0e-9a53-0d7f5b1c4e88", "role": "authenticated"}


@pytest.fixture(scope="module", params=[ROWS], ids=["rows"])
def crowd(
    request: pytest.FixtureRequest, postgres_server: Server, migrated_template: str
) -> Iterator[psycopg.Connection]:
    with (
        postgres_server.fresh_database(template=migrated_template) as url,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        assert migrations.pending_steps(url) == []
        seed(connection)
        for table in TABLES:
            copy_rows(connection, table, request.param)
        yield connection


def granted(connection: psycopg.Connection) -> list[tuple[str, str]]:
    """Tables and views, and what a token may do with rows of them."""
    return [
        (name, verb)
        for name in (*TABLES, *VIEWS)
        for verb in ("select", "update", "delete")
        if connection.execute(
            "select has_any_column_privilege('authenticated', %(t)s, %(v)s)"
            if verb != "delete"
            else "select has_table_privilege('authenticated', %(t)s, %(v)s)",
            {"t": f"public.{name}", "v": verb},
        ).fetchone()
        == (True,)
    ]


def statement(name: str, verb: str) -> sql.Composed:
    own = sql.Identifier("public", name)
    if verb == "select":
        return sql.SQL("select 1 from {}").format(own)
    if verb == "delete":
        return sql.SQL("delete from {}").format(own)
    changed = TABLES[name].may_change[0]
    return sql.SQL("update {0} set {1} = {1}").format(own, sql.Identifier(changed))


def test_every_table_has_its_crowd(crowd: psycopg.Connection) -> None:
    for table in TABLES:
        [count] = crowd.execute(f"select count(*) from public.{table}".encode()).fetchone() or [0]
        assert count >= ROWS, table


def test_a_token_without_claims_reads_no_table(
    crowd: psycopg.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    tried = granted(crowd)
    plans = {one: plan_of(crowd, SIGNED_IN, statement(*one)) for one in tried}
    slowest = max(plans, key=lambda one: plans[one][0])
    with capsys.disabled():
        print(
            f"\n{len(tried)} statements without claims at {ROWS} rows:"
            f" at most {plans[slowest][0]:.1f} ms ({' '.join(slowest)})"
        )

    assert len(tried) > 50
    assert {one: read for one, (_, read) in plans.items() if read} == {}
    assert {one: ms for one, (ms, _) in plans.items() if ms > MOST_MS} == {}


@pytest.mark.parametrize("crowd", [FEW], indirect=True, ids=["rows"])
def test_a_table_without_such_a_policy_is_noticed(crowd: psycopg.Connection) -> None:
    policies = crowd.execute(
        "select c.relname, p.polname from pg_policy p join pg_class c on c.oid = p.polrelid"
        " where p.polname like '%_of_a_tenant' order by 1"
    ).fetchall()
    unnoticed = []
    for table, policy in policies:
        with crowd.transaction(force_rollback=True):
            crowd.execute(f"drop policy {policy} on public.{table}".encode())
            _, read = plan_of(crowd, SIGNED_IN, statement(table, "select"))
            if read != {table}:
                unnoticed.append(table)

    assert len(policies) > 10
    assert unnoticed == []
