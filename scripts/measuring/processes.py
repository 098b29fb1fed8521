"""The bot's real processes: started for a measure, watched, and always stopped."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from scripts.measuring.deliveries import CREDENTIALS, Line

ROOT = Path(__file__).parents[2]
WEB = ("gunicorn", "-c", "gunicorn.conf.py", "app:create_app()")
WORKER = ("bot.worker",)
_OURS = ("FEISHU_", "SUPABASE_", "OPENAI_", "DATABASE_URL", "PORT", "DATA_DIR", "INLINE_")
_START_S = 60.0
_STOP_S = 15.0


class NotMeasured(Exception):
    """A measure could not be taken; the message says what to look at."""


@dataclass(frozen=True, slots=True)
class Process:
    """A child process whose output goes to a file."""

    name: str
    popen: subprocess.Popen[bytes]
    log: Path

    def check(self) -> None:
        """Raises `NotMeasured` when it has ended."""
        if self.popen.poll() is not None:
            tail = self.log.read_text(encoding="utf-8", errors="replace")[-800:]
            raise NotMeasured(f"{self.name} ended with {self.popen.returncode}: {tail}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def running(
    name: str, module: Iterable[str], folder: Path, environment: Mapping[str, str]
) -> AsyncIterator[Process]:
    """`python -m MODULE …` in a session of its own, stopped with everything it started."""
    log = folder / f"{name}.log"
    theirs = {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}
    with log.open("ab") as out:
        popen = subprocess.Popen(  # noqa: ASYNC220 - nothing is measured meanwhile
            [sys.executable, "-m", *module],
            cwd=ROOT,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**theirs, **CREDENTIALS, "PYTHONUNBUFFERED": "1", **environment},
            start_new_session=True,
        )
    try:
        yield Process(name, popen, log)
    finally:
        _stop(popen)


async def until_ready(process: Process, port: int, path: str = "/readyz") -> None:
    """Returns when `path` answers 200. Raises `NotMeasured` after a minute."""
    deadline = time.monotonic() + _START_S
    line = Line(port)
    while time.monotonic() < deadline:
        process.check()
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, IndexError):
            if await line.get(path) == 200:
                line.close()
                return
        line.close()
        await asyncio.sleep(0.02)
    raise NotMeasured(f"{process.name} is not ready after {_START_S:.0f} s: see its /readyz")


async def until_said(process: Process, words: str) -> None:
    """Returns when the process has written `words`. Raises `NotMeasured` after a minute."""
    deadline = time.monotonic() + _START_S
    while words not in process.log.read_text(encoding="utf-8", errors="replace"):
        process.check()
        if time.monotonic() > deadline:
            raise NotMeasured(f"{process.name} has not said {words!r} after {_START_S:.0f} s")
        await asyncio.sleep(0.05)


def postmaster(data_dir: Path) -> int:
    """The process id of the embedded Postgres below `data_dir`; 0 when it does not run."""
    file = data_dir / "postgres" / "postmaster.pid"
    with contextlib.suppress(FileNotFoundError):
        pid = int(file.read_text(encoding="utf-8").splitlines()[0])
        return pid if psutil.pid_exists(pid) else 0
    return 0


def stop_server(pid: int) -> None:
    """Stops a Postgres at once (its "fast" mode); 0 is none."""
    if pid:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.TimeoutExpired):
            server = psutil.Process(pid)
            server.send_signal(signal.SIGINT)
            server.wait(_STOP_S)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and everything it started, ended children included."""
    spent = 0.0
    for process in _tree(pid):
        with contextlib.suppress(psutil.NoSuchProcess):  # its time is its parent's by now
            spent += sum(process.cpu_times()[:4])
    return spent


def own_seconds(pid: int) -> float:
    """User and system time of one process alone."""
    return float(sum(psutil.Process(pid).cpu_times()[:2]))


def busy_seconds() -> float:
    """CPU time that all programs of this machine have used, over all cores."""
    times = psutil.cpu_times()
    idle = times.idle + getattr(times, "iowait", 0.0)
    return float(sum(times) - idle)


def memory_mb(pids: Iterable[int]) -> tuple[float, float]:
    """(RSS, PSS) in MB of processes; PSS counts shared pages once."""
    measured = [psutil.Process(pid).memory_full_info() for pid in pids]
    return sum(m.rss for m in measured) / 1e6, sum(m.pss for m in measured) / 1e6


def tree(pid: int) -> set[int]:
    """A process and everything below it."""
    return {process.pid for process in _tree(pid)}


def _tree(pid: int) -> list[psutil.Process]:
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def _stop(popen: subprocess.Popen[bytes]) -> None:
    """SIGTERM, a while later SIGKILL to the whole session."""
    if popen.poll() is None:
        popen.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            popen.wait(_STOP_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(popen.pid, signal.SIGKILL)
    popen.wait(_STOP_S)
