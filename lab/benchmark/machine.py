"""The machine that is measured on, and what else happens there."""

from __future__ import annotations

import datetime
import os
import platform
from pathlib import Path

import psutil  # type: ignore[import-untyped]


def describe_machine() -> dict[str, object]:
    """What the figures depend on; `load` is the load average (1 min) before the run."""
    return {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
        "cores": os.cpu_count() or 0,
        "cpu": _cpu_model(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
    }


def own_seconds(pid: int) -> float:
    """User and system time of one process alone."""
    return float(sum(psutil.Process(pid).cpu_times()[:2]))


def busy_seconds() -> float:
    """CPU time that all programs of this machine have used, over all cores."""
    times = psutil.cpu_times()
    idle = times.idle + getattr(times, "iowait", 0.0)
    return float(sum(times) - idle)


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
