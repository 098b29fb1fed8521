"""Fixtures that need a process: the database server and Supabase's API in front of it."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from lab.doubles import lite
from memory import migrations
from tests.support import postgres

_HERE = Path(__file__).parent

# How long an example takes says something about the machine's load, nothing about the rule. A build
# server looks at the same examples every time; new ones are looked for where somebody can follow.
# PROPERTY_EXAMPLES=500 looks more closely.
settings.register_profile(
    "steady",
    deadline=None,
    derandomize="CI" in os.environ,
    max_examples=int(os.environ.get("PROPERTY_EXAMPLES", "50")),
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

# What mostly waits for processes stands among what computes, so that the cores are never idle.
_ROUNDS = {"faults": 0, "acceptance": 1, "contract": 1, "integration": 1, "unit": 2}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole files go to the processes in this order: the longest is the first; the last ones are
    short, and end together."""
    files: dict[str, dict[Path, None]] = {folder: {} for folder in _ROUNDS}
    for item in items:
        files[item.path.relative_to(_HERE).parts[0]][item.path] = None
    places = {
        path: (_ROUNDS[folder], place / len(paths), path)
        for folder, paths in files.items()
        for place, path in enumerate(paths)
    }
    items.sort(key=lambda item: places[item.path])


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
        migrations.apply(url)
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
