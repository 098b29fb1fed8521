"""Stops background tasks for good."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

_AGAIN_S = 0.5


async def ended(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancels `tasks` until every one is done.

    Once is not enough: before Python 3.12 `asyncio.wait_for`, which connection pools use, loses a
    cancellation that comes in the moment of its success (python/cpython#86296), and a task that
    runs forever would then never end.
    """
    pending = {task for task in tasks if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=_AGAIN_S)
