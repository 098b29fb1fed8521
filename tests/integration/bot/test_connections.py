"""A database that cannot be used: one sentence, which quotes nothing of its URL."""

from __future__ import annotations

import psycopg
import pytest

from bot.queue.connections import NotConfigured, check_database, require_migrated
from bot.settings import Settings
from memory.errors import NotMigrated
from tests.support import postgres


def _settings(url: str) -> Settings:
    return Settings(database_url=url)


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("postgresql://bot:hush@127.0.0.1:1/x", "refuses the connection: check DATABASE_URL"),
        ("postgresql://bot:hush@nowhere.invalid/x", "the host of the database is not found"),
        ("postgresql://bot:wor@hush@127.0.0.1/x", "special characters of the password are perc"),
        ("postgresql:///x?host=/nowhere/hush", "the host of the database is not found"),
    ],
)
def test_a_database_that_does_not_answer_is_told_without_the_url(url: str, sentence: str) -> None:
    with pytest.raises(NotConfigured) as raised:
        check_database(_settings(url))

    assert sentence in str(raised.value)
    assert "hush" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_what_the_server_refuses_is_told(postgres_server: postgres.Server) -> None:
    with pytest.raises(NotConfigured, match="no database of that name"):
        check_database(_settings(postgres_server.database("no_such_database")))
    with pytest.raises(NotConfigured, match="refuses the user or the password"):
        check_database(_settings(postgres_server.database("postgres", user="nobody")))


def test_a_database_without_our_tables_is_told_by_what_it_lacks(blank_database_url: str) -> None:
    assert check_database(_settings(blank_database_url)) == ["schema.sql"]
    with pytest.raises(NotMigrated, match=r"^the database lacks schema\.sql: run scripts/migrate"):
        require_migrated(blank_database_url)


def test_functions_of_another_version_are_told_and_do(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "update feishu_bot.migrations set name = 'functions of another version' "
            "where name like 'functions %'"
        )

    (lacking,) = check_database(_settings(database_url))
    assert lacking.startswith("functions ")
    require_migrated(database_url)
