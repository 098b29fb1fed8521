"""How many turns a worker has memory for."""

from __future__ import annotations

from pathlib import Path

_OF_A_TURN = 200 * 1024
_SHARE = 0.3  # of what is free when the worker starts; Postgres and file readers need some too
_LEAST, _MOST = 100, 1000  # the queue's rounds name each job in hand
_CGROUP = Path("/sys/fs/cgroup")
_MEMINFO = Path("/proc/meminfo")


def turns_in_hand(workers: int, *, cgroup: Path = _CGROUP, meminfo: Path = _MEMINFO) -> int:
    """How many turns one of `workers` on this machine can have in hand, most of them waiting."""
    free = min((_free_in(cgroup), _free_of(meminfo)), key=lambda one: one or float("inf"))
    if not free:
        return _MOST
    return max(_LEAST, min(_MOST, int(free * _SHARE / _OF_A_TURN / workers)))


def _free_in(cgroup: Path) -> int | None:
    """The bytes that a container may still use; None: it has no limit."""
    try:
        limit = int((cgroup / "memory.max").read_text())
        return max(1, limit - int((cgroup / "memory.current").read_text()))
    except (OSError, ValueError):  # "max"
        return None


def _free_of(meminfo: Path) -> int | None:
    """The bytes that are free on the machine."""
    try:
        lines = meminfo.read_text().splitlines()
        [line] = [one for one in lines if one.startswith("MemAvailable:")]
        return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return None
