"""Under a publication for all tables the bot still deletes what it no longer needs."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest


@pytest.fixture
def published(database: psycopg.Connection) -> Iterator[psycopg.Connection]:
    """Postgres asks for a replica identity as soon as a publication has the table."""
    with database.transaction(force_rollback=True):
        database.execute("create publication everything for all tables")
        yield database


def test_rows_of_every_table_can_be_deleted(published: psycopg.Connection) -> None:
    tables = published.execute("""
        select format('%I.%I', schemaname, tablename) from pg_tables
        where schemaname in ('public', 'bot_private', 'feishu_bot')
    """).fetchall()
    assert len(tables) > 50
    for (name,) in tables:
        published.execute(f"delete from {name}".encode())


def test_the_inbox_is_pruned(published: psycopg.Connection) -> None:
    old = "insert into feishu_bot.inbox values ('message:om_1', now() - interval '9 days')"
    published.execute(old.encode())

    assert published.execute("select feishu_bot.prune_inbox(24)").fetchone() == (1,)


def test_a_table_without_an_identity_would_be_seen(published: psycopg.Connection) -> None:
    published.execute("alter table feishu_bot.inbox replica identity default")

    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="replica identity"):
        published.execute("select feishu_bot.prune_inbox(24)")
