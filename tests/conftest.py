"""Fixtures that need a process: the database server and Supabase's API in front of it."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import settings

from lab.doubles import lite, processes
from memory import migrations
from tests.support import depth, forking, postgres

processes.launch = forking.launch

pytest_plugins = ["tests.support.planning", "tests.support.routes"]


# How long an example takes says something about the machine's load, nothing about the rule. The
# short run tries the same examples every time, the deep run new ones.
settings.register_profile(
    "steady",
    deadline=None,
    derandomize=not depth.IS_DEEP,
    max_examples=depth.count("PROPERTY_EXAMPLES", short=25, deep=500),
)
settings.load_profile("steady")


# Databases, logs and copies of a run are thrown away, and nothing of them need wait for a disk.
_IN_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 4 << 30


def _keep_in_memory() -> None:
    """Temporary files go to memory where it has room, and where what is installed there may run."""
    if "TMPDIR" in os.environ or not _IN_MEMORY.is_dir():
        return
    runs_programs = not os.statvfs(_IN_MEMORY).f_flag & os.ST_NOEXEC
    if runs_programs and shutil.disk_usage(_IN_MEMORY).free > _ROOM_BYTES:
        os.environ["TMPDIR"] = tempfile.tempdir = str(_IN_MEMORY)


_keep_in_memory()

# A shell lets what it runs in the background ignore Ctrl-C, and so would every process of a test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_FOLDERS = ("faults", "acceptance", "contract", "integration", "unit")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the deep tests to the deep run. Neighbours need the same processes: each worker takes
    a run of them (`tests.support.planning`)."""
    ids = config.stash[depth.NODEIDS] = [item.nodeid for item in items]
    config.stash[depth.ALL_COLLECTED] = config.args == config.getini("testpaths")
    deep = depth.deep_only(ids)
    for item in items:
        if item.nodeid in deep:
            item.add_marker(pytest.mark.deep)
    if not depth.IS_DEEP and deep:
        config.hook.pytest_deselected(items=[one for one in items if one.nodeid in deep])
        items[:] = [one for one in items if one.nodeid not in deep]
    items.sort(key=lambda item: _FOLDERS.index(item.nodeid.split("/", 2)[1]))


@pytest.fixture(autouse=True, scope="module")
def _own_logging() -> Iterator[None]:
    """Ends what a command that a test called in this process did to the log."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def postgres_server() -> postgres.Server:
    """An embedded Postgres for the whole run."""
    return postgres.start_server()


@pytest.fixture(scope="session")
def migrated_template(postgres_server: postgres.Server) -> Iterator[str]:
    """The name of a migrated database that nobody connects to; the others are its copies."""
    with postgres_server.fresh_database() as url:
        migrations.apply_migrations(url)
        yield postgres.database_name(url)


@pytest.fixture
def database_url(postgres_server: postgres.Server, migrated_template: str) -> Iterator[str]:
    """A migrated database for one test."""
    with postgres_server.fresh_database(template=migrated_template) as url:
        yield url


@pytest.fixture
def blank_database_url(postgres_server: postgres.Server) -> Iterator[str]:
    """An empty database for one test."""
    with postgres_server.fresh_database() as url:
        yield url


@pytest.fixture(scope="session")
def shared_database_url(postgres_server: postgres.Server, migrated_template: str) -> Iterator[str]:
    """A migrated database for tests that keep apart by themselves (`tests.support.people`)."""
    with postgres_server.fresh_database(template=migrated_template) as url:
        yield url


@pytest.fixture(scope="session")
def supabase_lite(
    postgres_server: postgres.Server, shared_database_url: str
) -> Iterator[lite.SupabaseLite]:
    """Supabase's API for the whole run. Without Node it is skipped, but never on a build server."""
    if reason := lite.missing():
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with lite.run(shared_database_url, socket_folder=postgres_server.socket_folder) as server:
        yield server
