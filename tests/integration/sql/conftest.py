"""A database that the tests of a module share: what one leaves behind, the next one finds."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.postgres import Server


@pytest.fixture(scope="module")
def module_database_url(postgres_server: Server, migrated_template: str) -> Iterator[str]:
    """A migrated database of the module's own."""
    with postgres_server.fresh_database(template=migrated_template) as url:
        yield url


@pytest.fixture(scope="module")
def database(module_database_url: str) -> Iterator[psycopg.Connection]:
    """A connection to it, as the superuser."""
    with psycopg.connect(module_database_url, autocommit=True) as connection:
        yield connection
