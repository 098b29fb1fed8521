"""Rules every table, policy and function keeps; each rule is shown to find an offender."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.hygiene import READ_BY_NOBODY, RULES, offenders

_TABLE = "create table public.offender (id int)"
_FUNCTION = "create function public.offender() returns int language sql as 'select 1'"

OFFENDERS: dict[str, list[str]] = {
    "a table without row level security": [_TABLE],
    "a public table that no token can read": [
        _TABLE,
        "alter table public.offender enable row level security",
    ],
    "a policy for everybody": [_TABLE, "create policy offender on public.offender using (true)"],
    "a policy that reads a claim once per row": [
        _TABLE,
        "create policy offender on public.offender for select to authenticated"
        " using (public.claim('sub') = 'x' and 'y' = (select public.claim('actor')))",
    ],
    "a table that anon holds a privilege on": [_TABLE, "grant select on public.offender to anon"],
    "a view that steps over policies": [
        "create view public.offender as select * from public.agent_messages"
    ],
    "a function that anon can call": [_FUNCTION],
    "a function that runs as its owner": [f"{_FUNCTION} security definer"],
    "a function without a fixed search path": [_FUNCTION],
    "a function that runs as its owner and finds types of its caller": [
        f"{_FUNCTION} security definer set search_path = ''"
    ],
    "a table whose rows cannot be deleted under a publication": [
        _TABLE,
        "alter table public.offender enable row level security",
    ],
}


@pytest.mark.parametrize("rule", RULES)
def test_nothing_breaks_the_rule(database: psycopg.Connection, rule: str) -> None:
    assert offenders(database, rule) == set()


@pytest.mark.parametrize("rule", RULES)
def test_the_rule_finds_an_offender(database: psycopg.Connection, rule: str) -> None:
    with database.transaction(force_rollback=True):
        for statement in OFFENDERS[rule]:
            database.execute(statement.encode())

        [found] = offenders(database, rule)

    assert "offender" in found


def test_what_is_excused_exists_and_has_a_reason(database: psycopg.Connection) -> None:
    for table, reason in READ_BY_NOBODY.items():
        assert database.execute("select to_regclass(%s)", [table]).fetchone() != (None,)
        assert reason
