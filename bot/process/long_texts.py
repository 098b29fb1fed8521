"""Work on long texts leaves the event loop to others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

_Result = TypeVar("_Result")
_LONG = 10_000  # characters


async def computed(work: Callable[[], _Result], characters: int) -> _Result:
    """The result of `work`, which reads so many characters; of many, in a thread."""
    return await asyncio.to_thread(work) if characters > _LONG else work()
