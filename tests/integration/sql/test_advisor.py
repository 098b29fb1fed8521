"""Supabase's advisor and pgrls find nothing in the migrated schema that is not accepted."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict

import psycopg
import pytest

from lab.doubles.processes import ROOT
from tests.support.advisor import LINTS, findings
from tests.support.advisor_accepted import ADVISOR, PGRLS, Accepted

_FUNCTION = "create function public.offender() returns int language sql"
_TABLE = "create table public.offender (id int, other int)"

# For each lint a statement of which it finds something.
OFFENDERS = {
    "0001": f"{_TABLE}; alter table public.offender add primary key (id);"
    " alter table public.offender add foreign key (other) references public.offender",
    "0003": f"{_TABLE}; create policy a on public.offender using (public.claim('sub') = 'x')",
    "0004": _TABLE,
    "0006": f"{_TABLE}; create policy a on public.offender using (id = 1);"
    " create policy b on public.offender using (id = 2)",
    "0007": f"{_TABLE}; create policy a on public.offender using (id = 1)",
    "0008": f"{_TABLE}; alter table public.offender enable row level security",
    "0009": f"{_TABLE}; create index on public.offender (id); create index on public.offender (id)",
    "0010": "create view public.offender as select 1",
    "0011": f"{_FUNCTION} as 'select 1'",
    "0013": _TABLE,
    "0014": "alter extension vector set schema public",
    "0015": f"{_TABLE}; create policy offender on public.offender"
    " using (current_setting('user_metadata') = 'x')",
    "0016": "create materialized view public.offender as select 1;"
    " grant select on public.offender to authenticated",
    "0024": f"{_TABLE}; create policy offender on public.offender using (true)",
    "0026": f"{_TABLE}; grant select (id) on public.offender to anon",
    "0027": f"{_TABLE}; grant select on public.offender to authenticated",
    "0028": f"{_FUNCTION} security definer as 'select 1'",
    "0029": f"{_FUNCTION} security definer as 'select 1'",
}


def check_accepted(found: dict[str, set[str]], accepted: dict[str, Accepted]) -> None:
    """Fails for what is found and not accepted, and for what is accepted and not found."""
    unknown = {
        kind: odd
        for kind, objects in found.items()
        if (odd := {one for one in objects if not re.fullmatch(accepted.get(kind, ("",))[0], one)})
    }
    assert unknown == {}
    assert {kind: len(objects) for kind, objects in found.items() if objects} == {
        kind: count for kind, (_, count, _) in accepted.items()
    }


def test_the_advisor_finds_nothing_that_is_not_accepted(database: psycopg.Connection) -> None:
    check_accepted({lint: findings(database, lint) for lint in LINTS}, dict(ADVISOR))


@pytest.mark.parametrize("lint", LINTS)
def test_the_lint_finds_an_offender(database: psycopg.Connection, lint: str) -> None:
    before = findings(database, lint)
    with database.transaction(force_rollback=True):
        database.execute(OFFENDERS[lint.split()[0]].encode())
        assert findings(database, lint) - before


def test_pgrls_finds_nothing_that_is_not_accepted(module_database_url: str) -> None:
    command = [sys.executable, "-m", "pgrls", "lint", "--database-url", module_database_url]
    options = ["--schemas", "public,bot_private,feishu_bot", "--format", "json"]
    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout, done.stderr
    found = defaultdict[str, set[str]](set)
    for one in json.loads(done.stdout)["violations"]:
        found[one["rule_id"]].add(one["location"])
    check_accepted(found, dict(PGRLS))


@pytest.mark.parametrize("page", ["docs/setup-supabase.md", "docs/zh/setup-supabase.md"])
def test_operators_are_told_what_the_advisor_will_show(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for lint, (_, count, _) in ADVISOR.items():
        assert re.search(rf"\| {lint[:4]} [^|]*\| {count} \|", text), lint
