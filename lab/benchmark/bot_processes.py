"""The bot of a checkout, started by its public commands and stopped afterwards."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.benchmark.checkouts import Checkout
from lab.benchmark.process_accounting import BotProcesses
from lab.benchmark.processes import (
    MIGRATE,
    WEB,
    WORKER,
    ChildProcess,
    free_port,
    postmaster,
    running,
    stop_server,
    until_done,
    until_ready,
    until_said,
)
from lab.benchmark.setting import Setting


@dataclass(frozen=True, slots=True)
class Started:
    """A bot that is ready. `ready_s` is the time from its start until `/readyz` said so."""

    processes: BotProcesses
    port: int
    ready_s: float


@asynccontextmanager
async def bot(
    setting: Setting,
    checkout: Checkout,
    folder: Path,
    *,
    streaming: bool = False,
    url: str = "",
    **more: str,
) -> AsyncIterator[Started]:
    """All of it with its data in `folder`; `url`: its database, else the embedded one. `more` goes
    into its environment."""
    port = free_port()
    environment = setting.environment(
        port,
        DATA_DIR=str(folder),
        STREAM_REPLIES=str(streaming).lower(),
        INLINE_WORKER="0" if setting.apart else "1",
        **({"DATABASE_URL": url} if url else {}),
        **more,
    )
    async with AsyncExitStack() as stack:

        async def start(name: str, module: tuple[str, ...]) -> ChildProcess:
            return await stack.enter_async_context(
                running(name, module, folder, environment, checkout)
            )

        stack.callback(lambda: stop_server(postmaster(folder)))
        begun = time.perf_counter()
        started = [await start("web", WEB)]
        await until_ready(started[0], port)
        ready_s = time.perf_counter() - begun
        for number in range(setting.workers if setting.apart else 0):
            started.append(await start(f"worker{number}", WORKER))
            await until_said(started[-1], "worker.started")
        yield Started(BotProcesses(tuple(one.popen.pid for one in started), folder), port, ready_s)


async def migrate(setting: Setting, checkout: Checkout, folder: Path, url: str) -> None:
    """Brings a database to the checkout's version by its own script. Raises `NotMeasured`."""
    environment = setting.environment(free_port(), DATA_DIR=str(folder), DATABASE_URL=url)
    async with running("migrate", MIGRATE, folder, environment, checkout) as process:
        await until_done(process)
