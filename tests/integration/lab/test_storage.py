"""What the benchmark says a message takes on disk, against a real Postgres."""

from __future__ import annotations

import psycopg
import pytest

from lab.bench.storage import disk_use


def test_rows_indexes_and_long_values_add_up_to_the_whole_database(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("create table notes (id integer primary key, said text)")
        connection.execute("alter table notes alter said set storage external")
        before = disk_use(connection)
        connection.execute(
            "insert into notes select n, repeat('x', 9000) from generate_series(1, 200) n"
        )
        after = disk_use(connection)
    grown = {name: size - before.relations.get(name, 0) for name, size in after.relations.items()}
    assert grown["notes: long values"] > 200 * 9000
    assert grown["notes: rows"] > 0
    assert grown["notes: notes_pkey"] > 0
    # the server itself tidies up meanwhile
    assert sum(grown.values()) == pytest.approx(after.size - before.size, rel=0.2)
