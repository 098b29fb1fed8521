"""CPU, memory and connections of the bot's processes, by part, read from `/proc`."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

import psutil  # type: ignore[import-untyped]

from lab.doubles.processes import postmaster

PARTS = ("web", "worker", "supervisor", "Postgres")
_OTHER = "other"
_MODULES = {
    "bot.process.programs": "worker",
    "bot.worker": "worker",
    "bot.process.supervisor": "supervisor",
    "gunicorn": "web",
}
_CLIENT = re.compile(r"postgres: \S+ \S+ (\[local\]|\S+\(\d+\))")


def part_of(command: Sequence[str]) -> str:
    """Returns the part of the bot that a command line runs. A worker inside gunicorn is “web”."""
    if command and PurePath(command[0]).name.startswith("postgres"):
        return "Postgres"
    words = " ".join(command)
    return next((part for module, part in _MODULES.items() if module in words), _OTHER)


def serves_client(command: Sequence[str]) -> bool:
    """True for a Postgres process that serves a connection; its title says whose."""
    return _CLIENT.match(" ".join(command)) is not None


def passed(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Returns what was added, by name."""
    return {name: amount - before.get(name, 0.0) for name, amount in after.items()}


def own_seconds(pid: int) -> float:
    """Returns user and system time of one process alone."""
    return float(sum(psutil.Process(pid).cpu_times()[:2]))


def busy_seconds() -> float:
    """Returns the CPU time that all programs of this machine have used, over all cores."""
    times = psutil.cpu_times()
    idle = times.idle + getattr(times, "iowait", 0.0)
    return float(sum(times) - idle)


@dataclass(frozen=True, slots=True)
class BotProcesses:
    """The processes of one bot: those started, their children, and the Postgres in `data_dir`."""

    started: tuple[int, ...]
    data_dir: Path

    def cpu_seconds(self) -> dict[str, float]:
        """Returns user and system time by part; an ended child counts with its parent."""
        spent: Counter[str] = Counter()
        for process, part in self._by_part():
            with contextlib.suppress(psutil.NoSuchProcess):
                spent[part] += sum(process.cpu_times()[:4])
        return dict(spent)

    def pss_mb(self) -> dict[str, float]:
        """Returns memory by part from `/proc/PID/smaps_rollup`; shared pages count once."""
        held: Counter[str] = Counter()
        for process, part in self._by_part():
            with contextlib.suppress(psutil.NoSuchProcess):
                held[part] += process.memory_full_info().pss / 1e6
        return dict(held)

    def connections(self) -> int:
        """Counts the connections to Postgres."""
        count = 0
        for process in self._alive():
            with contextlib.suppress(psutil.NoSuchProcess):
                count += serves_client(process.cmdline())
        return count

    def _by_part(self) -> Iterator[tuple[psutil.Process, str]]:
        for process in self._alive():
            with contextlib.suppress(psutil.NoSuchProcess):
                yield process, part_of(process.cmdline())

    def _alive(self) -> set[psutil.Process]:
        """Postgres may or may not be a descendant of what was started."""
        found: set[psutil.Process] = set()
        for pid in (*self.started, postmaster(self.data_dir)):
            if pid:
                root = psutil.Process(pid)
                found |= {root, *root.children(recursive=True)}
        return found
