"""What the bot's processes use: CPU, memory, connections, by part, read from `/proc`."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

import psutil  # type: ignore[import-untyped]

from lab.benchmark.processes import postmaster

PARTS = ("web", "worker", "supervisor", "Postgres")
_OTHER = "other"
_MODULES = {
    "bot.process.prefork": "worker",
    "bot.worker": "worker",
    "bot.process": "supervisor",
    "gunicorn": "web",
}
_WAITED = re.compile(r"^voluntary_ctxt_switches:\s*(\d+)$", re.MULTILINE)
_CLIENT = re.compile(r"postgres: \S+ \S+ (\[local\]|\S+\(\d+\))")


def part_of(command: Sequence[str]) -> str:
    """Which part of the bot a command line is. A worker inside gunicorn's process is "web"."""
    if command and PurePath(command[0]).name.startswith("postgres"):
        return "Postgres"
    words = " ".join(command)
    return next((part for module, part in _MODULES.items() if module in words), _OTHER)


def serves_client(command: Sequence[str]) -> bool:
    """Whether it is a process of Postgres that serves a connection (its title says whose)."""
    return _CLIENT.match(" ".join(command)) is not None


@dataclass(frozen=True, slots=True)
class BotProcesses:
    """All processes of one bot: those that were started, what they started, their Postgres."""

    started: tuple[int, ...]
    data_dir: Path

    def cpu_seconds(self) -> dict[str, float]:
        """User and system time by part, that of ended children counted with who buried them."""
        spent: Counter[str] = Counter()
        for process, part in self._by_part():
            with contextlib.suppress(psutil.NoSuchProcess):  # its time is its parent's by now
                spent[part] += sum(process.cpu_times()[:4])
        return dict(spent)

    def wake_ups(self) -> dict[str, float]:
        """How often their threads had waited for something and went on, by part, since they began;
        threads and processes that have ended are not counted."""
        counted: Counter[str] = Counter()
        for process, part in self._by_part():
            for thread in Path(f"/proc/{process.pid}/task").glob("*"):
                with contextlib.suppress(OSError):
                    counted[part] += int(_WAITED.findall((thread / "status").read_text())[0])
        return {part: float(times) for part, times in counted.items()}

    def pss_mb(self) -> dict[str, float]:
        """Memory by part from `/proc/PID/smaps_rollup`; what several share is counted once."""
        held: Counter[str] = Counter()
        for process, part in self._by_part():
            with contextlib.suppress(psutil.NoSuchProcess):
                held[part] += process.memory_full_info().pss / 1e6
        return dict(held)

    def connections(self) -> int:
        """To Postgres."""
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
        """Postgres may or may not run below what was started."""
        found: set[psutil.Process] = set()
        for pid in (*self.started, postmaster(self.data_dir)):
            if pid:
                root = psutil.Process(pid)
                found |= {root, *root.children(recursive=True)}
        return found
