"""One phase of talk and what it took: processor time by part, memory, and what people saw."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import requests

from lab.benchmark.load import PIECE
from lab.benchmark.machine import busy_seconds, own_seconds
from lab.benchmark.process_accounting import BotProcesses
from lab.benchmark.setting import Setting
from lab.talk.people import OpenLoop, TalkOutcome
from lab.talk.schedule import Utterance
from lab.talk.speech import Group

_PIECES = 8
_LOOK_S = 0.25
_NEARLY_NOTHING_S = 0.03  # of the processor between two looks, beyond what a bot at rest takes
_LONGEST_TAIL_S = 15.0


@dataclass(frozen=True, slots=True)
class Phase:
    """`cpu` in seconds and `wake_ups` by part, from the first arrival until the bot had nothing
    left to do, which took `took_s`. `window_s`, `cores` and `others`: from the first to the last
    arrival; of that the cores that the bot used, and by name those that the rest of the machine
    did. `waiting` questions had no answer at the end of the window, when `pss` (MB by part) was
    taken."""

    heard: TalkOutcome
    cpu: Mapping[str, float]
    took_s: float
    window_s: float
    cores: float
    others: Mapping[str, float]
    pss: Mapping[str, float]
    waiting: int
    wake_ups: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bot:
    """A bot that runs. `idle` is what it takes of the processor at rest, in cores by part."""

    setting: Setting
    processes: BotProcesses
    port: int
    idle: Mapping[str, float]

    async def hear(
        self,
        groups: Sequence[Group],
        schedule: Sequence[Utterance],
        *,
        model_s: float,
        patience_s: float,
    ) -> Phase:
        """What is said by that schedule, with a model that takes so long."""
        await pace_model(self.setting, model_s)
        woken = self.processes.wake_ups()
        loop = OpenLoop(self.setting.platform, self.port, groups, model_s)
        began, before, around = time.perf_counter(), self.processes.cpu_seconds(), self._around()
        await loop.speak(schedule)
        window_s, waiting = time.perf_counter() - began, loop.waiting
        in_window = passed(before, self.processes.cpu_seconds())
        others = self._others(passed(around, self._around()), in_window, window_s)
        pss = await asyncio.to_thread(self.processes.pss_mb)
        last = time.perf_counter()
        await loop.finish(model_s + patience_s)
        if loop.heard.lines:  # one of the last may be taken for a question
            await asyncio.sleep(last + model_s - time.perf_counter())
        await self._until_idle()
        cpu = passed(before, self.processes.cpu_seconds())
        wake_ups = passed(woken, self.processes.wake_ups())
        return Phase(
            heard=loop.close(),
            cpu=cpu,
            took_s=time.perf_counter() - began,
            window_s=window_s,
            cores=sum(in_window.values()) / window_s,
            others=others,
            pss=pss,
            waiting=waiting,
            wake_ups=wake_ups,
        )

    async def _until_idle(self) -> None:
        """Overheard lines have no answer: the bot is done when it takes no more than at rest."""
        until = time.perf_counter() + _LONGEST_TAIL_S
        at, spent = time.perf_counter(), self._spent()
        while at < until:
            await asyncio.sleep(_LOOK_S)
            now, total = time.perf_counter(), self._spent()
            if total - spent <= sum(self.idle.values()) * (now - at) + _NEARLY_NOTHING_S:
                return
            at, spent = now, total

    def _spent(self) -> float:
        return sum(self.processes.cpu_seconds().values())

    def _around(self) -> dict[str, float]:
        """Processor seconds so far of the driver, the model, and the whole machine."""
        return {
            "driver": own_seconds(os.getpid()),
            "model": own_seconds(self.setting.model_pid),
            "machine": busy_seconds(),
        }

    @staticmethod
    def _others(
        around: Mapping[str, float], cpu: Mapping[str, float], window_s: float
    ) -> dict[str, float]:
        known = around["driver"] + around["model"]
        rest = around["machine"] - known - sum(cpu.values())
        spent = {"driver": around["driver"], "model": around["model"], "other programs": rest}
        return {name: seconds / window_s for name, seconds in spent.items()}


def passed(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """What was added, by name."""
    return {name: amount - before.get(name, 0.0) for name, amount in after.items()}


async def pace_model(setting: Setting, model_s: float) -> None:
    """From now on the model takes so long for an answer, which a stream brings in eight pieces."""
    script = {"rules": [{"text": PIECE * _PIECES, "duration_s": model_s}]}
    url = setting.model_url.removesuffix("/v1") + "/control/script"
    answer = await asyncio.to_thread(requests.post, url, json=script, timeout=30)
    answer.raise_for_status()
