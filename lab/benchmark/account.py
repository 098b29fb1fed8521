"""What a number of people who talk to the bot see, and the CPU that it takes meanwhile."""

from __future__ import annotations

import asyncio

from lab.benchmark.load import Askers, Load
from lab.benchmark.process_accounting import BotProcesses

_TAIL_S = 0.3  # what the bot still does after the last reply counts too


async def measure_load(
    processes: BotProcesses, people: Askers, number: int, seconds: float
) -> Load:
    """So many people talk for a while."""
    before = processes.cpu_seconds()
    seen = await people.talk(number, seconds)
    await asyncio.sleep(_TAIL_S)
    after = processes.cpu_seconds()
    return Load(seen, {part: spent - before.get(part, 0.0) for part, spent in after.items()})
