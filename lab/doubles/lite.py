"""Supabase Lite in front of a test database: the real API over real HTTP, without an account."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from lab.doubles.processes import free_port

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
    with outage(database_url, socket_folder=socket_folder) as server:
        yield server.address


@contextmanager
def outage(database_url: str, *, socket_folder: str) -> Iterator[Outage]:
    """As `run`, with a server that can be taken away and brought back."""
    with tempfile.TemporaryDirectory(prefix="bot-tests-lite-") as folder:
        port = free_port()
        _write_config(Path(folder), port, urlsplit(database_url).path.removeprefix("/"))
        server = Outage(SupabaseLite(port, database_url), folder, socket_folder)
        server.start()
        try:
            yield server
        finally:
            server.kill()


class Outage:
    """Supabase Lite on a port of its own, through its outages."""

    def __init__(self, address: SupabaseLite, folder: str, socket_folder: str) -> None:
        self.address = address
        self._folder = folder
        self._socket_folder = socket_folder
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    def start(self) -> None:
        """Starts it, on the port it has always had."""
        process = subprocess.Popen(
            [COMMAND, "start", "--no-admin"],
            cwd=self._folder,
            env={
                **os.environ,
                "PGHOST": self._socket_folder,
                "PGUSER": "postgres",
                "DO_NOT_TRACK": "1",
                "LITE_TELEMETRY": "0",
                "NO_COLOR": "1",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        lines: list[str] = []
        ready = threading.Event()
        self._process = process
        self._reader = threading.Thread(target=_read, args=(process, lines, ready))
        self._reader.start()
        if not ready.wait(180) or process.poll() is not None:
            self.kill()
            raise RuntimeError("Supabase Lite did not start:\n" + "".join(lines))
        self._ask_once()

    def _ask_once(self) -> None:
        """At its first request it grants rights, and two at once would fail."""
        first = Request(
            f"{self.address.url}/rest/v1/chats?limit=0", headers={"apikey": PUBLISHABLE_KEY}
        )
        with suppress(HTTPError):
            urlopen(first, timeout=60).close()

    def kill(self) -> None:
        """Kills it: connections break, new ones are refused."""
        if self._process is None or self._reader is None:
            return
        self._signal(signal.SIGKILL)
        self._process.wait(10)
        self._reader.join(10)
        if self._process.stdout:
            self._process.stdout.close()
        self._process = None

    def hang(self) -> None:
        """From now on it takes connections and requests and never answers."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """It answers again, first of all what has reached it meanwhile."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)


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


def _read(process: subprocess.Popen[str], lines: list[str], ready: threading.Event) -> None:
    """Drains the output for as long as the process lives; its end counts as ready, too."""
    for line in process.stdout or ():
        lines.append(line)
        if "Ready in" in line:  # in colour when CI is set
            ready.set()
    ready.set()
