"""The bot of a checkout, started by its public commands and stopped afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.benchmark.checkouts import Checkout
from lab.benchmark.process_accounting import BotProcesses
from lab.benchmark.processes import (
    WEB,
    free_port,
    postmaster,
    running,
    stop_server,
    until_ready,
)
from lab.benchmark.setting import Setting


@dataclass(frozen=True, slots=True)
class Started:
    """A bot that is ready."""

    processes: BotProcesses
    port: int


@asynccontextmanager
async def bot(
    setting: Setting,
    checkout: Checkout,
    folder: Path,
    *,
    streaming: bool = False,
    **more: str,
) -> AsyncIterator[Started]:
    """All of it with its data in `folder`. `more` goes into its environment."""
    port = free_port()
    environment = setting.environment(
        port,
        DATA_DIR=str(folder),
        STREAM_REPLIES=str(streaming).lower(),
        INLINE_WORKER="1",
        **more,
    )
    async with AsyncExitStack() as stack:
        stack.callback(lambda: stop_server(postmaster(folder)))
        web = await stack.enter_async_context(running("web", WEB, folder, environment, checkout))
        await until_ready(web, port)
        yield Started(BotProcesses((web.popen.pid,), folder), port)
