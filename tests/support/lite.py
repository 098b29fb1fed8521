"""Supabase Lite in front of a test database: the real API over real HTTP, without an account."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.postgres import database_name

COMMAND = Path(__file__).parents[2] / "node_modules" / ".bin" / "lite"

JWT_SECRET = "a-signing-key-that-only-these-tests-know-0123456789"
PUBLISHABLE_KEY = "sb_publishable_for_these_tests_only"
SECRET_KEY = "sb_secret_for_these_tests_only"

_CONFIG = """\
project_id = "tests"
[api]
port = {port}
schemas = ["public"]
[db]
driver = "postgres"
url = "postgresql:///{database}"
[auth]
enabled = true
jwt_secret = "{secret}"
publishable_key = "{publishable}"
secret_key = "{service}"
"""


@dataclass(frozen=True, slots=True)
class SupabaseLite:
    """A running server: where it listens and its keys."""

    port: int
    database_url: str
    jwt_secret: str = JWT_SECRET
    publishable_key: str = PUBLISHABLE_KEY
    secret_key: str = SECRET_KEY

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def missing() -> str | None:
    """Why Supabase Lite cannot run here, or None when it can."""
    if shutil.which("node") is None:
        return "Node.js 20 or newer is not installed"
    if not COMMAND.exists():
        return "Supabase Lite is not installed: run `npm ci`"
    return None


@contextmanager
def run(database_url: str, *, socket_folder: str) -> Iterator[SupabaseLite]:
    """Serves a database, which must be migrated: the schema is read once, at start."""
    with tempfile.TemporaryDirectory(prefix="bot-tests-lite-") as folder:
        port = free_port()
        _write_config(Path(folder), port, database_name(database_url))
        with _process(folder, socket_folder):
            yield SupabaseLite(port, database_url)


def free_port() -> int:
    """A loopback port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _write_config(folder: Path, port: int, database: str) -> None:
    text = _CONFIG.format(
        port=port,
        database=database,
        secret=JWT_SECRET,
        publishable=PUBLISHABLE_KEY,
        service=SECRET_KEY,
    )
    (folder / "supabase").mkdir()
    (folder / "supabase" / "config.toml").write_text(text, encoding="utf-8")


@contextmanager
def _process(folder: str, socket_folder: str) -> Iterator[None]:
    environment = {
        **os.environ,
        "PGHOST": socket_folder,
        "PGUSER": "postgres",
        "DO_NOT_TRACK": "1",
        "LITE_TELEMETRY": "0",
        "NO_COLOR": "1",
    }
    process = subprocess.Popen(
        [COMMAND, "start", "--no-admin"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines: list[str] = []
    ready = threading.Event()
    reader = threading.Thread(target=_read, args=(process, lines, ready))
    reader.start()
    try:
        if not ready.wait(30) or process.poll() is not None:
            raise RuntimeError("Supabase Lite did not start:\n" + "".join(lines))
        yield
    finally:
        process.terminate()
        process.wait(10)
        reader.join(10)
        if process.stdout:
            process.stdout.close()


def _read(process: subprocess.Popen[str], lines: list[str], ready: threading.Event) -> None:
    """Drains the output for as long as the process lives; its end counts as ready, too."""
    for line in process.stdout or ():
        lines.append(line)
        if "Ready in" in line:  # in colour when CI is set
            ready.set()
    ready.set()
