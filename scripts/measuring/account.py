"""The account of one mention: CPU, memory, connections and what people wait for, by part.

One run starts the bot, lets it rest, lets 100 people warm it up and then 1, 20 and 100 people talk,
each for a while. Versions are compared run by run in turn, so that the noise of the machine meets
both alike.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg

from scripts.measuring.accounting import PARTS, Bot, busy_seconds, own_seconds
from scripts.measuring.bots import bot
from scripts.measuring.checkouts import Checkout
from scripts.measuring.figures import Figure
from scripts.measuring.people import People, Seen
from scripts.measuring.processes import NotMeasured, socket_folder
from scripts.measuring.setting import Setting, address

_REST_S = 5.0
_WARM_UP_S = 3.0
_TAIL_S = 0.3  # what the bot still does after the last reply counts too


@dataclass(frozen=True, slots=True)
class Load:
    """What a number of people saw and what it took; CPU in seconds by part."""

    seen: Seen
    cpu: Mapping[str, float]
    others_cores: float
    feishu_connections: int

    def cpu_ms(self, part: str) -> float:
        """Of one part, per answered mention."""
        return self.seen.per_mention(1000 * self.cpu.get(part, 0.0))

    @property
    def total_cpu_ms(self) -> float:
        """Of all processes, per answered mention."""
        return self.seen.per_mention(1000 * sum(self.cpu.values()))


@dataclass(frozen=True, slots=True)
class Held:
    """Memory in MB by part, and connections to Postgres."""

    pss: Mapping[str, float]
    connections: int

    @property
    def total(self) -> float:
        return sum(self.pss.values())


@dataclass(frozen=True, slots=True)
class Run:
    """One version, started once; `loaded` is the larger of two looks right after a load."""

    streaming: bool
    ready_s: float
    resting: Held
    loaded: Held
    alone: Load
    twenty: Load
    hundred: Load


async def set_up(setting: Setting, checkout: Checkout) -> float:
    """Starts a version for the first time, database included; gives the seconds until ready."""
    async with bot(setting, checkout, setting.folder / checkout.label) as started:
        return started.ready_s


async def run(setting: Setting, checkout: Checkout, *, streaming: bool) -> Run:
    """One run. Raises `NotMeasured` when replies are not stored."""
    folder = setting.folder / checkout.label
    async with bot(setting, checkout, folder, streaming=streaming) as started:
        processes, people = started.processes, People(setting.platform, started.port)
        await asyncio.sleep(_REST_S)
        resting = _held(processes)
        stored = _stored(folder)
        warm = await _load(setting, processes, people, 100, _WARM_UP_S)
        looks = [_held(processes)]
        alone = await _load(setting, processes, people, 1, setting.seconds / 2)
        twenty = await _load(setting, processes, people, 20, setting.seconds)
        hundred = await _load(setting, processes, people, 100, setting.seconds)
        looks.append(_held(processes))
        answered = sum(len(one.seen.replies) for one in (warm, alone, twenty, hundred))
        if (found := _stored(folder) - stored) < answered:
            raise NotMeasured(f"{answered} replies arrived and {found} are stored as sent")
    loaded = max(looks, key=lambda held: held.total)
    return Run(streaming, started.ready_s, resting, loaded, alone, twenty, hundred)


def figures(found: Run, first_start_s: float) -> list[Figure]:
    """A run against the bars."""
    return [
        *_of_memory(found, first_start_s),
        *_of_waiting(found),
        *_of_cpu("20 people", found.twenty, found.streaming),
        *_of_cpu("100 people", found.hundred, found.streaming),
    ]


def _of_memory(found: Run, first_start_s: float) -> list[Figure]:
    resting, loaded = found.resting, found.loaded
    first = f"first start with set-up: {first_start_s:.1f} s"
    at_rest, at_load = "connections to Postgres, at rest", "connections to Postgres, 100 people"
    return [
        Figure("start to ready", found.ready_s, "s", 3, note=first),
        Figure("memory at rest, PSS", resting.total, "MB", 150, note=_parts(resting.pss)),
        Figure(
            *("memory under load, PSS", loaded.total, "MB", 220),
            note=_parts(loaded.pss),
            streaming=found.streaming,
        ),
        Figure(at_rest, resting.connections),
        Figure(at_load, loaded.connections, streaming=found.streaming),
    ]


def _of_waiting(found: Run) -> list[Figure]:
    alone, twenty, hundred = found.alone.seen, found.twenty.seen, found.hundred.seen
    on, least = found.streaming, 80 if found.streaming else 120
    answers = f"{len(alone.replies)} replies"
    return [
        _waiting("overhead, 1 person, p50", alone.overhead_ms(0.5), 15, answers, streaming=on),
        _waiting("overhead, 20 people, p50", twenty.overhead_ms(0.5), 25, streaming=on),
        _waiting("overhead, 20 people, p95", twenty.overhead_ms(0.95), 80, streaming=on),
        _waiting("ack, 20 people, p99", twenty.ack_ms(0.99), 20, streaming=on),
        _waiting("overhead, 100 people, p50", hundred.overhead_ms(0.5), streaming=on),
        _waiting("ack, 100 people, p99", hundred.ack_ms(0.99), streaming=on),
        Figure(
            *("throughput, 100 people", hundred.rate, "mentions/s", least),
            at_least=True,
            streaming=on,
        ),
    ]


def _waiting(
    name: str, value: float, bar: float | None = None, note: str = "", *, streaming: bool
) -> Figure:
    return Figure(name, value, "ms", bar, note=note, streaming=streaming)


def _of_cpu(who: str, load: Load, streaming: bool) -> list[Figure]:
    disturbed = "taken from this run by the rest of the machine"
    asked, made = len(load.seen.acks), load.seen.per_mention(load.feishu_connections)
    total, most = load.total_cpu_ms, 18 if streaming else 12
    found = [
        Figure(f"CPU, {who}", total, "ms/mention", most),
        *(Figure(f"CPU, {who}: {part}", load.cpu_ms(part), "ms/mention") for part in PARTS),
        Figure(f"new connections to Feishu, {who}", made, "per mention", 0),
        Figure(f"unanswered, {who}", load.seen.unanswered, "", 0, note=f"of {asked}"),
        Figure(f"other programs, {who}", load.others_cores, "cores", note=disturbed),
    ]
    return [replace(figure, streaming=streaming) for figure in found]


async def _load(
    setting: Setting, processes: Bot, people: People, number: int, seconds: float
) -> Load:
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


def _held(processes: Bot) -> Held:
    return Held(processes.pss_mb(), processes.connections())


def _parts(amounts: Mapping[str, float]) -> str:
    return ", ".join(f"{part} {amount:.0f}" for part, amount in sorted(amounts.items()))


def _stored(data_dir: Path) -> int:
    """What was answered is stored, else the figures are of something that does not work."""
    with psycopg.connect(address(socket_folder(data_dir))) as connection:
        row = connection.execute(
            "select count(*) from agent_messages where role = 'assistant' and status = 'sent'"
        ).fetchone()
    return int(row[0]) if row else 0
