"""What a connection with a deadline asks past psycopg's cursors."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.errors import AdminShutdown, DivisionByZero, UndefinedTable

from memory.deadlines import DeadlineConnection

_QUERY = b"select 6 / n from unnest($1::int[]) n"


@pytest.fixture(params=[5, None], ids=["prepared", "through a pooler"])
def connection(database_url: str, request: pytest.FixtureRequest) -> Iterator[DeadlineConnection]:
    with DeadlineConnection.connect(
        database_url, autocommit=True, prepare_threshold=request.param
    ) as connected:
        yield connected


def test_it_gives_the_first_column_each_time(connection: DeadlineConnection) -> None:
    asked = [connection.ask(_QUERY, [b"{1,2,null}"]) for _ in range(3)]
    assert asked == [[b"6", b"3", None]] * 3


def test_each_query_gives_its_own_answer_however_many_there_are(
    connection: DeadlineConnection,
) -> None:
    answers = {b"select %d + $1::int" % n: [b"%d" % (n + 1)] for n in range(20)}
    for _ in range(2):
        assert {query: connection.ask(query, [b"1"]) for query in answers} == answers

    [prepared] = connection.ask(b"select count(*) from pg_prepared_statements", [])
    assert prepared == (b"8" if connection.prepare_threshold else b"0")


def test_a_query_that_cannot_be_prepared_stands_in_the_way_of_none(
    connection: DeadlineConnection,
) -> None:
    for _ in range(2):
        with pytest.raises(UndefinedTable):
            connection.ask(b"select * from nowhere", [])
    assert connection.ask(_QUERY, [b"{3}"]) == [b"2"]


def test_an_error_has_its_code_and_the_connection_stays(connection: DeadlineConnection) -> None:
    with pytest.raises(DivisionByZero):
        connection.ask(_QUERY, [b"{0}"])
    assert connection.ask(_QUERY, [b"{3}"]) == [b"2"]


def test_a_large_value_arrives_whole(connection: DeadlineConnection) -> None:
    assert connection.ask(b"select length($1)", [b"x" * 20_000_000]) == [b"20000000"]


def test_a_connection_that_the_server_ends_is_said_to_be_ended(
    connection: DeadlineConnection, database_url: str
) -> None:
    connection.ask(_QUERY, [b"{1}"])
    with psycopg.connect(database_url, autocommit=True) as other:
        other.execute("select pg_terminate_backend(%s)", [connection.info.backend_pid])
    with pytest.raises(psycopg.OperationalError) as ended:
        connection.ask(_QUERY, [b"{1}"])
    assert connection.closed
    assert isinstance(ended.value, AdminShutdown) or not ended.value.sqlstate
