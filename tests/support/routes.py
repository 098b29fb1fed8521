"""The routes to the memory: a direct connection for every test, and Supabase's API for a few.

Both routes reach the same functions of the same Postgres with the same role and claims, so policies
hold and fail alike. `OVER_THE_API` names the tests that run over the API too: those of the
transport, and one call of each function that the bot calls.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support import backends
from tests.support.backends import Backend, PostgresBackend, SupabaseBackend

_TESTS = Path(__file__).parents[1]
# By test: the functions it has to reach. A test of the transport needs to reach none in particular.
OVER_THE_API: Mapping[str, frozenset[str]] = {
    test: frozenset(functions.split())
    for test, functions in json.loads((_TESTS / "over_the_api.json").read_text("utf-8")).items()
}


def _test_of(node: pytest.Item | pytest.Function) -> str:
    """`contract/test_x.py::test_y`, without parameters."""
    return node.nodeid.partition("[")[0].removeprefix(f"{_TESTS.name}/")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "route" in metafunc.fixturenames:
        both = _test_of(metafunc.definition) in OVER_THE_API
        routes = ["postgres", "supabase"] if both else ["postgres"]
        metafunc.parametrize("route", routes, indirect=True)


@pytest.fixture
def route(request: pytest.FixtureRequest) -> Iterator[str]:
    """How the memory is reached. Over the API, the test has to call the functions it stands for."""
    backends.called_over_the_api.clear()
    yield request.param
    if request.param == "supabase":
        assert OVER_THE_API[_test_of(request.node)] <= backends.called_over_the_api


@pytest.fixture
def backend(request: pytest.FixtureRequest, route: str) -> Backend:
    """Where the memory lives."""
    if route == "supabase":
        return SupabaseBackend(request.getfixturevalue("supabase_lite"))
    server = request.getfixturevalue("postgres_server")
    return PostgresBackend(request.getfixturevalue("shared_database_url"), server.socket_folder)
