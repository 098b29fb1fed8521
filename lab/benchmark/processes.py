"""The bot's real processes: started for a measure, watched, and always stopped."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import psycopg

from lab.benchmark.checkouts import Checkout
from lab.doubles.feishu_events import CREDENTIALS, TalkLine
from memory.errors import ServerRefused
from memory.migrations import MigrationFailed

WEB = ("gunicorn", "-c", "gunicorn.conf.py", "app:create_app()")
WORKER = ("bot.worker",)
_OURS = (
    *("FEISHU_", "SUPABASE_", "OPENAI_", "DATABASE_URL", "PORT", "DATA_DIR", "INLINE_"),
    *("WORKER", "STREAM_", "PYTHON", "BOT_", "PROMETHEUS_"),
)
_START_S = 60.0
_STOP_S = 15.0


class NotMeasured(Exception):
    """A measure could not be taken; the message says what to look at."""


EXPECTED = (
    *(NotMeasured, MigrationFailed, ServerRefused, psycopg.Error),
    *(OSError, TimeoutError, ExceptionGroup),
)
"""What may go wrong in a measure without being a fault of the benchmark."""


@dataclass(frozen=True, slots=True)
class ChildProcess:
    """A child process whose output goes to a file."""

    name: str
    popen: subprocess.Popen[bytes]
    log: Path

    def check(self) -> None:
        """Raises `NotMeasured` when it has ended."""
        if self.popen.poll() is not None:
            raise NotMeasured(f"{self.name} ended with {self.popen.returncode}: {_tail(self.log)}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def running(
    name: str,
    module: Iterable[str],
    folder: Path,
    environment: Mapping[str, str],
    checkout: Checkout,
) -> AsyncIterator[ChildProcess]:
    """`python -m MODULE …` of a checkout in a session of its own, stopped with everything it
    started; its log is `folder/NAME.log`."""
    folder.mkdir(exist_ok=True)  # noqa: ASYNC240
    log = folder / f"{name}.log"
    with log.open("wb") as out:
        popen = subprocess.Popen(  # noqa: ASYNC220 - nothing is measured meanwhile
            [checkout.python, "-m", *module],
            cwd=checkout.root,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**_inherited(), **CREDENTIALS, "PYTHONUNBUFFERED": "1", **environment},
            start_new_session=True,
        )
    try:
        yield ChildProcess(name, popen, log)
    finally:
        await asyncio.to_thread(_stop, popen)


async def until_ready(process: ChildProcess, port: int, path: str = "/readyz") -> None:
    """Returns when `path` answers 200. Raises `NotMeasured` after a minute."""
    deadline = time.monotonic() + _START_S
    line = TalkLine(port)
    while time.monotonic() < deadline:
        process.check()
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, IndexError):
            if await line.get(path) == 200:
                line.close()
                return
        line.close()
        await asyncio.sleep(0.02)
    raise NotMeasured(f"{process.name} is not ready after {_START_S:.0f} s: see its /readyz")


async def until_said(process: ChildProcess, words: str) -> None:
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


def socket_folder(data_dir: Path) -> Path:
    """Where that Postgres listens. Source: storage-file-layout, postmaster.pid, line 5."""
    folder = data_dir / "postgres"
    said = (folder / "postmaster.pid").read_text(encoding="utf-8").splitlines()[4].strip()
    return Path(said) if (Path(said) / ".s.PGSQL.5432").exists() else folder


def stop_server(pid: int) -> None:
    """Stops a Postgres at once (its "fast" mode); 0 is none."""
    if pid:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.TimeoutExpired):
            server = psutil.Process(pid)
            server.send_signal(signal.SIGINT)
            server.wait(_STOP_S)


def _inherited() -> dict[str, str]:
    """The environment without what would change the bot."""
    return {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}


def _tail(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-800:]


def _stop(popen: subprocess.Popen[bytes]) -> None:
    """SIGTERM, a while later SIGKILL to the whole session."""
    if popen.poll() is None:
        popen.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            popen.wait(_STOP_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(popen.pid, signal.SIGKILL)
    popen.wait(_STOP_S)
