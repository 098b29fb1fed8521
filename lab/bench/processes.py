"""The bot's real processes and the stand-ins for Feishu and the model, stopped at the end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg
import requests

from lab.bench.accounting import BotProcesses
from lab.bench.checkouts import Checkout
from lab.doubles.feishu_events import CREDENTIALS, TalkLine
from lab.doubles.minimal_feishu import StandIn
from lab.doubles.processes import free_port, postmaster, stop_server
from memory.errors import ServerRefused
from memory.migrations import MigrationFailed

MODEL_S = 0.3
_PIECES = 8  # of a streamed answer
_PIECE = "a dozen chr "  # the stand-in model streams twelve characters at a time
_WEB = ("gunicorn", "-c", "gunicorn.conf.py", "app:create_app()")
_OURS = (
    *("FEISHU_", "SUPABASE_", "OPENAI_", "DATABASE_URL", "PORT", "DATA_DIR", "INLINE_"),
    *("WORKER", "STREAM_", "PYTHON", "BOT_", "PROMETHEUS_"),
)
_START_S = 60.0
_STOP_S = 15.0


class NotMeasured(Exception):
    """A measure could not be taken; the message says where to look."""


EXPECTED = (
    *(NotMeasured, MigrationFailed, ServerRefused, psycopg.Error),
    *(OSError, TimeoutError, ExceptionGroup),
)
"""Errors of a measured bot, as opposed to defects of the benchmark."""


@dataclass(frozen=True, slots=True)
class ChildProcess:
    """A child process whose output goes to a file."""

    name: str
    popen: subprocess.Popen[bytes]
    log: Path

    def check(self) -> None:
        """Raises `NotMeasured` if it has ended."""
        if self.popen.poll() is not None:
            raise NotMeasured(f"{self.name} ended with {self.popen.returncode}: {_tail(self.log)}")


@dataclass(frozen=True, slots=True)
class Setting:
    """The surroundings of every measure. `folder` is deleted at the end."""

    folder: Path
    platform: StandIn
    model_url: str
    model_pid: int
    workers: int = 1
    calls_per_second: int = 10_000

    async def pace_model(self, model_s: float) -> None:
        """Sets how long each answer takes; a stream brings it in eight pieces."""
        await self.script_model({"rules": [{"text": _PIECE * _PIECES, "duration_s": model_s}]})

    async def script_model(self, script: Mapping[str, object]) -> None:
        url = self.model_url.removesuffix("/v1") + "/control/script"
        answer = await asyncio.to_thread(requests.post, url, json=script, timeout=60)
        answer.raise_for_status()

    def environment(self, port: int, **more: str) -> dict[str, str]:
        """Builds the environment of the bot."""
        return {
            "PORT": str(port),
            "FEISHU_DOMAIN": self.platform.url,
            "FEISHU_CALLS_PER_SECOND": str(self.calls_per_second),
            "REQUESTS_PER_MINUTE": "0",  # the few people of a measure ask without a pause
            "STREAM_REPLIES": "false",
            "WORKERS": str(self.workers),
            "INLINE_WORKER": "1",
            "OPENAI_API_KEY": "bench",
            "OPENAI_VISION": "false",
            "OPENAI_BASE_URL": self.model_url,
            **more,
        }


@asynccontextmanager
async def stand_ins(
    folder: Path, this: Checkout, platform: StandIn | None = None, **options: int
) -> AsyncIterator[Setting]:
    """Runs Feishu inside this process and the model as a process of its own."""
    platform, port = platform or StandIn(), free_port()
    await platform.start()
    command = ("sandbox.model.model", "--port", str(port))
    async with running("model", command, folder, {}, this) as model:
        await until_said(model, "Chat Completions at")
        url = f"http://127.0.0.1:{port}/v1"
        yield Setting(folder, platform, url, model.popen.pid, **options)
    await platform.stop()


@asynccontextmanager
async def running_bot(
    setting: Setting, checkout: Checkout, folder: Path, **more: str
) -> AsyncIterator[tuple[BotProcesses, int]]:
    """Runs the whole bot with its data in `folder`; `more` are variables. Yields its processes and
    port once it is ready."""
    port = free_port()
    environment = setting.environment(port, DATA_DIR=str(folder), **more)
    async with AsyncExitStack() as stack:
        stack.callback(lambda: stop_server(postmaster(folder)))
        web = await stack.enter_async_context(running("web", _WEB, folder, environment, checkout))
        await until_ready(web, port)
        yield BotProcesses((web.popen.pid,), folder), port


@asynccontextmanager
async def running(
    name: str,
    module: Iterable[str],
    folder: Path,
    environment: Mapping[str, str],
    checkout: Checkout,
) -> AsyncIterator[ChildProcess]:
    """Runs `python -m MODULE …` of a checkout in a session of its own, logs to `folder/NAME.log`,
    and stops it with everything it started."""
    folder.mkdir(exist_ok=True)  # noqa: ASYNC240
    log = folder / f"{name}.log"
    own = {"PYTHONUNBUFFERED": "1", **checkout.environment}
    with log.open("wb") as out:
        popen = subprocess.Popen(  # noqa: ASYNC220 - nothing is measured meanwhile
            [checkout.python, "-m", *module],
            cwd=checkout.root,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**_inherited(), **CREDENTIALS, **own, **environment},
            start_new_session=True,
        )
    try:
        yield ChildProcess(name, popen, log)
    finally:
        await asyncio.to_thread(_stop, popen)


async def until_ready(process: ChildProcess, port: int) -> None:
    """Returns once `/readyz` answers 200. Raises `NotMeasured` after a minute."""
    deadline = time.monotonic() + _START_S
    line = TalkLine(port)
    while time.monotonic() < deadline:
        process.check()
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, IndexError):
            if await line.get("/readyz") == 200:
                line.close()
                return
        line.close()
        await asyncio.sleep(0.02)
    raise NotMeasured(f"{process.name} is not ready after {_START_S:.0f} s: see its /readyz")


async def until_said(process: ChildProcess, words: str) -> None:
    """Returns once the process has written `words`. Raises `NotMeasured` after a minute."""
    deadline = time.monotonic() + _START_S
    while words not in process.log.read_text(encoding="utf-8", errors="replace"):
        process.check()
        if time.monotonic() > deadline:
            raise NotMeasured(f"{process.name} has not said {words!r} after {_START_S:.0f} s")
        await asyncio.sleep(0.05)


def database_url(data_dir: Path) -> str:
    """Returns the superuser's URL of the bot's Postgres. Source: storage-file-layout,
    postmaster.pid, line 5 names its socket folder."""
    folder = data_dir / "postgres"
    said = (folder / "postmaster.pid").read_text(encoding="utf-8").splitlines()[4].strip()
    there = Path(said) if (Path(said) / ".s.PGSQL.5432").exists() else folder
    return f"postgresql://postgres@/postgres?host={quote(str(there), safe='/')}"


def _inherited() -> dict[str, str]:
    """Returns the environment without the variables that would change the bot."""
    return {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}


def _tail(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-800:]


def _stop(popen: subprocess.Popen[bytes]) -> None:
    """Sends SIGTERM, and later SIGKILL to the whole session."""
    if popen.poll() is None:
        popen.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            popen.wait(_STOP_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(popen.pid, signal.SIGKILL)
    popen.wait(_STOP_S)
