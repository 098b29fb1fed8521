"""The account of one mention: CPU, memory, connections and what people wait for, by part.

One run starts the bot, lets it rest, lets 100 people warm it up and then 1, 20 and 100 people talk,
each for a while. Versions are compared run by run in turn, so that the noise of the machine meets
both alike.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import psycopg

from lab.benchmark.bot_processes import bot
from lab.benchmark.checkouts import Checkout
from lab.benchmark.load import Askers
from lab.benchmark.machine import busy_seconds, own_seconds
from lab.benchmark.process_accounting import BotProcesses
from lab.benchmark.processes import NotMeasured, socket_folder
from lab.benchmark.setting import Setting, address
from lab.benchmark.targets import Held, Load, Run

_REST_S = 5.0
_WARM_UP_S = 3.0
_TAIL_S = 0.3  # what the bot still does after the last reply counts too


async def set_up(setting: Setting, checkout: Checkout, folder: Path) -> float:
    """Starts a version for the first time, database included; gives the seconds until ready."""
    async with bot(setting, checkout, folder) as started:
        return started.ready_s


async def run(setting: Setting, checkout: Checkout, *, streaming: bool) -> Run:
    """One run. Raises `NotMeasured` when replies are not stored."""
    folder = setting.folder / checkout.label
    async with bot(setting, checkout, folder, streaming=streaming) as started:
        processes = started.processes
        people = Askers(setting.platform, started.port, setting.model_s(streaming=streaming))
        await asyncio.sleep(_REST_S)
        resting = _held(processes)
        stored = _stored(folder)
        warm = await measure_load(setting, processes, people, 100, _WARM_UP_S)
        looks = [_held(processes)]
        alone = await measure_load(setting, processes, people, 1, setting.seconds / 2)
        twenty = await measure_load(setting, processes, people, 20, setting.seconds)
        hundred = await measure_load(setting, processes, people, 100, setting.seconds)
        looks.append(_held(processes))
        answered = sum(len(one.seen.replies) for one in (warm, alone, twenty, hundred))
        if (found := _stored(folder) - stored) < answered:
            raise NotMeasured(f"{answered} replies arrived and {found} are stored as sent")
    loaded = max(looks, key=lambda held: held.total)
    return Run(streaming, started.ready_s, resting, loaded, alone, twenty, hundred)


async def measure_load(
    setting: Setting, processes: BotProcesses, people: Askers, number: int, seconds: float
) -> Load:
    """So many people talk for a while."""
    around = (setting.model_pid, os.getpid())
    connections = setting.platform.connections
    before, busy = processes.cpu_seconds(), _around(around)
    seen = await people.talk(number, seconds)
    await asyncio.sleep(_TAIL_S)
    after = processes.cpu_seconds()
    cpu = {part: spent - before.get(part, 0.0) for part, spent in after.items()}
    others = _around(around) - busy - sum(cpu.values())
    made = setting.platform.connections - connections
    return Load(seen, cpu, others / (seen.took + _TAIL_S), made)


def _around(known: tuple[int, ...]) -> float:
    """CPU seconds of this machine without those of the stand-ins."""
    return busy_seconds() - sum(map(own_seconds, known))


def _held(processes: BotProcesses) -> Held:
    return Held(processes.pss_mb(), processes.connections())


def _stored(data_dir: Path) -> int:
    """What was answered is stored, else the figures are of something that does not work."""
    with psycopg.connect(address(socket_folder(data_dir))) as connection:
        row = connection.execute(
            "select count(*) from agent_messages where role = 'assistant' and status = 'sent'"
        ).fetchone()
    return int(row[0]) if row else 0
