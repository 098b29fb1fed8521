"""The real processes of an acceptance test: the bot, the platform and the model, each by itself."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar

import psutil  # type: ignore[import-untyped]
import requests

ROOT = Path(__file__).parents[2]
APP = {
    "FEISHU_APP_ID": "cli_a1b2c3d4e5f6a7b8",
    "FEISHU_APP_SECRET": "acceptance-app-secret",
    "FEISHU_ENCRYPT_KEY": "acceptance-encrypt-key",
    "FEISHU_VERIFICATION_TOKEN": "acceptance-verification-token",
}
T = TypeVar("T")


# Below those that the system gives away by itself, and each process of the run has its share of
# them: between a look and the start of whoever is to listen there, nobody else takes it.
_PORTS = range(15_000, 32_000)
_SHARES = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_SHARE = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


def _in_turn(ports: Sequence[int]) -> Iterator[int]:
    start = random.randrange(len(ports))
    return itertools.cycle([*ports[start:], *ports[:start]])


_NEXT_PORTS = _in_turn(_PORTS[_SHARE::_SHARES])


def free_port() -> int:
    """A loopback port that nobody listens on right now.

    No port comes twice within a run: what asked for the first may not listen there yet.
    """
    for port in _NEXT_PORTS:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def eventually(ask: Callable[[], T], *, within_s: float = 120.0, what: str = "") -> T:
    """The first truthy answer of `ask`; an AssertionError names `what` after `within_s`."""
    deadline, pause_s = time.monotonic() + within_s, 0.02
    while True:
        answer = ask()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_s} s: {what or ask}")
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.2, 0.1)


class StartedProcess(Protocol):
    """The part of `subprocess.Popen` that is used here."""

    pid: int
    returncode: int | None

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, number: int, /) -> None: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


@dataclass
class Process:
    """A child process whose output goes to a file."""

    name: str
    popen: StartedProcess
    log: Path

    def kill(self) -> None:
        """SIGKILL to the process and, for a gunicorn master, to its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait(30)

    def terminate(self, *, within_s: float = 15.0) -> float:
        """SIGTERM; returns the seconds until it was gone."""
        started = time.monotonic()
        self.popen.terminate()
        self.popen.wait(within_s)
        return time.monotonic() - started

    def output(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")


def start(
    name: str,
    command: Sequence[str],
    folder: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
) -> Process:
    log = folder / f"{name}.log"
    with log.open("ab") as out:
        child = launch(command, {**clean_environment(), **(env or {})}, cwd, out)
    return Process(name, child, log)


def spawn(
    command: Sequence[str], env: Mapping[str, str], cwd: Path, out: IO[bytes]
) -> StartedProcess:
    """Starts a process in a session of its own; both its outputs go to `out`."""
    return subprocess.Popen(
        command, cwd=cwd, env=env, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
    )


launch: Callable[[Sequence[str], Mapping[str, str], Path, IO[bytes]], StartedProcess] = spawn


def stop(process: Process) -> None:
    if process.popen.poll() is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.terminate()
    process.kill()


def postmaster(data_dir: Path) -> int:
    """Returns the process id of the embedded Postgres below `data_dir`, or 0 if it does not run."""
    file = data_dir / "postgres" / "postmaster.pid"
    with contextlib.suppress(FileNotFoundError):
        pid = int(file.read_text(encoding="utf-8").splitlines()[0])
        return pid if psutil.pid_exists(pid) else 0
    return 0


def stop_server(pid: int) -> None:
    """Stops a Postgres at once (its “fast” mode); 0 is none."""
    if pid:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.TimeoutExpired):
            server = psutil.Process(pid)
            server.send_signal(signal.SIGINT)
            server.wait(15)


def clean_environment() -> dict[str, str]:
    ours = (
        "FEISHU_", "SUPABASE_", "OPENAI_", "DATABASE_URL", "PORT", "DATA_DIR", "INLINE_",
        "CONSOLE_", "MCP_CONFIG", "SPECIALISTS_DIR", "BOT_INSTRUCTIONS",
    )  # fmt: skip
    kept = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    return {**kept, "PYTHONUNBUFFERED": "1"}


def local_session() -> requests.Session:
    """Returns connections that stay open, for whoever waits asks often."""
    session = requests.Session()
    session.trust_env = False  # it looks for proxies with every request
    return session


@dataclass
class PlatformDouble:
    """The stand-in platform: speak as a person, read what was sent."""

    url: str
    process: Process
    session: requests.Session = field(default_factory=local_session)

    def get(self, path: str, **params: Any) -> Any:
        return self.session.get(f"{self.url}/sandbox/api{path}", params=params, timeout=30).json()

    def post(self, path: str, **body: Any) -> Any:
        answer = self.session.post(f"{self.url}/sandbox/api{path}", json=body, timeout=30)
        assert answer.ok, answer.text
        return answer.json()

    def state(self) -> Any:
        return self.get("/state")

    def say(self, person: str, chat_id: str, text: str, **more: Any) -> str:
        """Speaks as `person` (open_id); returns the message_id."""
        message = self.post("/messages", **{"as": person, "chat_id": chat_id, "text": text, **more})
        return str(message["message_id"])

    def messages(self, chat_id: str) -> list[dict[str, Any]]:
        return list(self.get("/messages", chat_id=chat_id)["items"])

    def calls(self, path_prefix: str, method: str = "") -> list[dict[str, Any]]:
        """What the bot called there; a call counts when it arrives, before any fault."""
        found = self.get("/requests", path_prefix=path_prefix)["items"]
        return [call for call in found if method in ("", call["method"])]

    def disturb_replies(self, **fault: Any) -> None:
        """Prepares a trouble of the next reply, whatever its question; no other call has it."""
        messages = "/open-apis/im/v1/messages/"
        self.post("/faults", path_prefix=messages, path_suffix="/reply", method="POST", **fault)

    def forget_faults(self) -> None:
        self.session.delete(f"{self.url}/sandbox/api/faults", timeout=30)


@dataclass
class ModelDouble:
    """The stand-in model: what it was asked, and what it shall answer."""

    url: str
    process: Process
    session: requests.Session = field(default_factory=local_session)

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def requests(self) -> list[dict[str, Any]]:
        found = self.session.get(f"{self.url}/control/requests", timeout=30).json()
        return list(found["requests"] if isinstance(found, dict) else found)

    def load(self) -> dict[str, int]:
        """How many completions are under way, the most so far, how many it refused (`at_once`)."""
        return dict(self.session.get(f"{self.url}/control/load", timeout=30).json())

    def forget(self) -> None:
        self.session.delete(f"{self.url}/control/requests", timeout=30)

    def control(self, path: str, body: Any) -> None:
        answer = self.session.post(f"{self.url}/control/{path}", json=body, timeout=30)
        assert answer.ok, answer.text


def wait_for_http(url: str, process: Process, *, within_s: float = 180.0) -> None:
    def answers() -> bool:
        assert process.popen.poll() is None, f"{process.name} ended:\n{process.output()}"
        with contextlib.suppress(requests.RequestException):
            return requests.get(url, timeout=10).status_code < 500
        return False

    eventually(answers, within_s=within_s, what=f"{url} answers\n{process.output()}")


@contextlib.contextmanager
def running_platform(folder: Path, webhook_url: str, *options: str) -> Iterator[PlatformDouble]:
    port = free_port()
    command = [
        sys.executable, "-m", "sandbox", "--port", str(port), "--webhook-url", webhook_url,
        "--app-id", APP["FEISHU_APP_ID"], "--app-secret", APP["FEISHU_APP_SECRET"],
        "--encrypt-key", APP["FEISHU_ENCRYPT_KEY"],
        "--verification-token", APP["FEISHU_VERIFICATION_TOKEN"],
        *options,
    ]  # fmt: skip
    process = start("platform", command, folder)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for_http(f"{url}/sandbox/api/state", process)
        yield PlatformDouble(url, process)
    finally:
        process.kill()


@contextlib.contextmanager
def running_model(folder: Path) -> Iterator[ModelDouble]:
    port = free_port()
    command = [sys.executable, "-m", "sandbox.model.model", "--port", str(port)]
    process = start("model", command, folder)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for_http(f"{url}/v1/models", process)
        yield ModelDouble(url, process)
    finally:
        process.kill()


@dataclass
class BotUnderTest:
    """The bot's processes: gunicorn with so many `webs` for the edge, `bot.worker` for the work."""

    folder: Path
    port: int
    environment: dict[str, str]
    webs: int = 1
    web: Process | None = None
    workers: list[Process] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def processes(self) -> list[Process]:
        return [*self.workers, *([self.web] if self.web else [])]

    def start(self, workers: int) -> None:
        """Its processes at the same time, as the one command starts them."""
        web, began = self._begin_web(), [self._begin_worker() for _ in range(workers)]
        for worker in began:
            until_started(worker)
        wait_for_http(f"{self.url}/healthz", web)

    def start_web(self) -> Process:
        web = self._begin_web()
        wait_for_http(f"{self.url}/healthz", web)
        return web

    def start_worker(self) -> Process:
        worker = self._begin_worker()
        until_started(worker)
        return worker

    def stop(self) -> None:
        """Asks each to end, and waits for it."""
        for process in self.processes:
            stop(process)

    def kill(self) -> None:
        for process in self.processes:
            process.kill()

    def _begin_web(self) -> Process:
        options = ["-c", "gunicorn.conf.py", "--workers", str(self.webs)]
        command = [sys.executable, "-m", "gunicorn", *options, "app:create_app()"]
        self.web = start("web", command, self.folder, self.environment)
        return self.web

    def _begin_worker(self) -> Process:
        name = f"worker{len(self.workers)}"
        worker = start(name, [sys.executable, "-m", "bot.worker"], self.folder, self.environment)
        self.workers.append(worker)
        return worker


def until_started(worker: Process) -> None:
    """A worker says so itself; an AssertionError holds what it says when it ends instead."""

    def started() -> bool:
        assert worker.popen.poll() is None, worker.output()
        return "worker.started" in worker.output()

    eventually(started, within_s=180, what=f"{worker.name} starts")


@contextlib.contextmanager
def running_bot(
    folder: Path, port: int, environment: Mapping[str, str], *, workers: int = 1, webs: int = 1
) -> Iterator[BotUnderTest]:
    usual = {**APP, "PORT": str(port), "DATA_DIR": str(folder), "REQUESTS_PER_MINUTE": "0"}
    usual["OPENAI_VISION"] = "false"  # or each worker asks, and tests count requests
    bot = BotUnderTest(folder, port, {**usual, **environment}, webs)
    try:
        bot.start(workers)
        yield bot
    finally:
        bot.kill()
