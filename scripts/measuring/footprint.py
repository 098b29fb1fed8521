"""Start-up and idle memory of the whole bot as one command: gunicorn, inline worker, Postgres."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from scripts.measuring.figures import Figure, percentile
from scripts.measuring.processes import (
    WEB,
    free_port,
    memory_mb,
    postmaster,
    running,
    stop_server,
    tree,
    until_ready,
)
from scripts.measuring.setting import Setting

_SETTLE_S = 5.0
_STARTS = 3


async def measure_footprint(setting: Setting) -> list[Figure]:
    """Set-up (first start) is not timed; then each start until `/readyz` says ready."""
    folder = setting.folder / "alone"
    folder.mkdir()
    try:
        set_up, *_ = await _start(setting, folder)
        starts = [await _start(setting, folder) for _ in range(1 if setting.quick else _STARTS)]
    finally:
        stop_server(postmaster(folder))
    ready, web, server, pss = (percentile([start[i] for start in starts], 0.5) for i in range(4))
    parts = f"gunicorn and worker {web:.0f}, Postgres {server:.0f}"
    return [
        Figure("start to ready", ready, "s", 5, note=f"first start with set-up: {set_up:.1f} s"),
        Figure("idle memory, RSS", web + server, "MB", 250, note=parts),
        Figure("idle memory, PSS", pss, "MB", note="shared pages counted once"),
    ]


async def _start(setting: Setting, folder: Path) -> tuple[float, float, float, float]:
    """Seconds until ready; then, after a moment of rest, RSS of the bot and of Postgres, PSS (MB).

    Postgres may or may not run below the web server.
    """
    port = free_port()
    environment = setting.environment(
        port, DATA_DIR=str(folder), OPENAI_API_KEY="bench", OPENAI_BASE_URL="http://127.0.0.1:9/v1"
    )
    started = time.perf_counter()
    async with running("alone", WEB, folder, environment) as web:
        await until_ready(web, port)
        seconds = time.perf_counter() - started
        await asyncio.sleep(_SETTLE_S)
        server = tree(postmaster(folder))
        bot_rss, bot_pss = memory_mb(tree(web.popen.pid) - server)
        server_rss, server_pss = memory_mb(server)
    return seconds, bot_rss, server_rss, bot_pss + server_pss
