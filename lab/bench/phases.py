"""One phase of talk and its cost: processor time by part, memory, and what people saw."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab.bench.accounting import BotProcesses, busy_seconds, own_seconds, passed
from lab.bench.people import GroupPeople, TalkHeard
from lab.bench.processes import Setting
from lab.bench.speech import Group, Utterance

_REST_S = 5.0
_LOOK_S = 0.25
_NEARLY_NOTHING_S = 0.03  # of the processor between two looks, beyond a bot at rest
_LONGEST_TAIL_S = 15.0


@dataclass(frozen=True, slots=True)
class Phase:
    """`cpu` is in seconds by part, from the first message until the bot was idle again, which took
    `took_s`. `window_s` is the time from the first to the last message; in it the bot used `cores`
    and other programs `others`. At its end, `waiting` questions had no answer, and `pss` (MB by
    part) was taken."""

    heard: TalkHeard
    cpu: Mapping[str, float]
    took_s: float
    window_s: float
    cores: float
    others: Mapping[str, float]
    pss: Mapping[str, float]
    waiting: int

    @property
    def cpu_ms(self) -> float:
        """Processor time per answered mention, of all parts."""
        return 1000 * sum(self.cpu.values()) / max(self.heard.turns, 1)

    @property
    def rate(self) -> float:
        """Answered mentions a second."""
        return len(self.heard.answers) / self.window_s


@dataclass(frozen=True, slots=True)
class Bot:
    """A running bot; at rest it takes `idle` cores and `pss` MB, by part."""

    setting: Setting
    processes: BotProcesses
    port: int
    idle: Mapping[str, float]
    pss: Mapping[str, float]

    @classmethod
    async def at_rest(cls, setting: Setting, processes: BotProcesses, port: int) -> Bot:
        """Measures the bot that nobody talks to."""
        await asyncio.sleep(1.0)
        before, began = processes.cpu_seconds(), time.perf_counter()
        await asyncio.sleep(_REST_S)
        took = time.perf_counter() - began
        spent = passed(before, processes.cpu_seconds())
        idle = {part: seconds / took for part, seconds in spent.items()}
        return cls(setting, processes, port, idle, processes.pss_mb())

    async def hear(
        self,
        groups: Sequence[Group],
        talk: Sequence[Utterance] | int,
        *,
        model_s: float,
        patience_s: float = 60.0,
        seconds: float = 0.0,
    ) -> Phase:
        """Measures a schedule, or so many people who ask in turn for `seconds`."""
        await self.setting.pace_model(model_s)
        people = GroupPeople(self.setting.platform, self.port, groups, model_s)
        began, before, around = time.perf_counter(), self.processes.cpu_seconds(), self._around()
        await (people.ask_in_turn(talk, seconds) if isinstance(talk, int) else people.speak(talk))
        window_s, waiting = time.perf_counter() - began, people.waiting
        in_window = passed(before, self.processes.cpu_seconds())
        others = _others(passed(around, self._around()), in_window, window_s)
        pss = await asyncio.to_thread(self.processes.pss_mb)
        last = time.perf_counter()
        await people.finish(model_s + patience_s)
        if people.heard.lines:  # the bot may answer one of the last
            await asyncio.sleep(last + model_s - time.perf_counter())
        await self._until_idle()
        return Phase(
            heard=people.close(),
            cpu=passed(before, self.processes.cpu_seconds()),
            took_s=time.perf_counter() - began,
            window_s=window_s,
            cores=sum(in_window.values()) / window_s,
            others=others,
            pss=pss,
            waiting=waiting,
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
        """Returns processor seconds so far of the driver, the model, and the whole machine."""
        return {
            "driver": own_seconds(os.getpid()),
            "model": own_seconds(self.setting.model_pid),
            "machine": busy_seconds(),
        }


def _others(
    around: Mapping[str, float], cpu: Mapping[str, float], window_s: float
) -> dict[str, float]:
    rest = around["machine"] - around["driver"] - around["model"] - sum(cpu.values())
    spent = {"driver": around["driver"], "model": around["model"], "other programs": rest}
    return {name: seconds / window_s for name, seconds in spent.items()}
