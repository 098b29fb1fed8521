"""Seconds each test module takes: the table in the repository, and the plan made from it."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parents[1] / "durations.json"
_UNKNOWN_S = 0.05  # per test of a module that is not in the table


def stored() -> dict[str, float]:
    """Returns the seconds of each module that `scripts/test --durations` measured last."""
    return dict(_table().get("modules", {}))


def store(seconds: Mapping[str, float], run_s: float) -> None:
    """Writes the table, heaviest module first; `run_s` is what the whole run took."""
    order = sorted(seconds, key=lambda module: (-round(seconds[module], 1), module))
    modules = {module: round(seconds[module], 1) for module in order}
    run = f"took {run_s / 60:.0f} minutes on {os.cpu_count()} cores when last measured"
    table = json.dumps({"run": run, "modules": modules}, indent=1)
    TABLE.write_text(table + "\n", encoding="utf-8")


def _table() -> dict[str, Any]:
    return dict(json.loads(TABLE.read_text(encoding="utf-8"))) if TABLE.exists() else {}


def module_of(nodeid: str) -> str:
    """Returns the file in a test's id."""
    return nodeid.partition("::")[0]


def shares(nodeids: Sequence[str], workers: int, seconds: Mapping[str, float]) -> list[list[int]]:
    """Divides the tests among workers: whole neighbouring modules, in about the same time.

    Each share, a list of indices, begins with its heaviest module.
    """
    indices: dict[str, list[int]] = defaultdict(list)
    for index, nodeid in enumerate(nodeids):
        indices[module_of(nodeid)].append(index)
    lasts = {module: seconds.get(module, len(of) * _UNKNOWN_S) for module, of in indices.items()}
    parts: list[list[str]] = [[] for _ in range(workers)]
    passed, total = 0.0, sum(lasts.values()) or 1.0
    for module in indices:
        middle = passed + lasts[module] / 2
        parts[min(int(middle / total * workers), workers - 1)].append(module)
        passed += lasts[module]
    heaviest_first = (sorted(part, key=lambda module: -lasts[module]) for part in parts)
    return [[index for module in part for index in indices[module]] for part in heaviest_first]


if __name__ == "__main__":
    print(_table().get("run", "not measured yet"))
