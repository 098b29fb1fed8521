"""`sql/schema.sql` says what a migrated database holds."""

from __future__ import annotations

import psycopg

from lab.schema.database import FILE, describe
from memory import migrations
from tests.support import stored_database
from tests.support.schema import definitions, differences

# Those of functions stand in `functions/` and `access.sql`.
_ELSEWHERE = ("function ", "grants on function ", "trigger ")


def test_the_file_is_what_migrating_gives(database: psycopg.Connection) -> None:
    is_current = describe(database) == FILE.read_text(encoding="utf-8")

    assert is_current, "sql/schema.sql is stale: run .venv/bin/python -m lab.schema and commit it"


def test_a_database_from_before_the_baseline_becomes_what_the_file_says(
    blank_database_url: str,
) -> None:
    stored_database.load(blank_database_url)
    migrations.apply(blank_database_url)

    with psycopg.connect(blank_database_url) as connection:
        assert describe(connection) == FILE.read_text(encoding="utf-8")


def test_read_as_sql_the_file_makes_that_database(
    database: psycopg.Connection, blank_database_url: str
) -> None:
    with psycopg.connect(blank_database_url) as connection:
        connection.execute(FILE.read_bytes())
        made = definitions(connection)

    differing = differences(made, definitions(database))
    assert [name for name in differing if not name.startswith(_ELSEWHERE)] == []
