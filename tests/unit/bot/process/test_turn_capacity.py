"""As many turns in hand as there is memory for."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.process.concurrency import turn_capacity

MB = 1024 * 1024


@pytest.mark.parametrize(
    ("limit", "used", "free", "workers", "turns"),
    [
        ("max", 0, 16_000, 1, 1000),
        (str(512 * MB), 112 * MB, 16_000, 1, 614),
        (str(512 * MB), 112 * MB, 16_000, 4, 153),
        (str(512 * MB), 512 * MB, 16_000, 1, 100),
        (None, 0, 200, 1, 307),
        (None, 0, None, 1, 1000),
    ],
)
def test_the_limit_follows_what_is_free(
    tmp_path: Path, limit: str | None, used: int, free: int | None, workers: int, turns: int
) -> None:
    if limit is not None:
        (tmp_path / "memory.max").write_text(f"{limit}\n")
        (tmp_path / "memory.current").write_text(f"{used}\n")
    if free is not None:
        (tmp_path / "meminfo").write_text(
            f"MemTotal: 99999999 kB\nMemAvailable: {free * 1024} kB\n"
        )

    assert turn_capacity(workers, cgroup=tmp_path, meminfo=tmp_path / "meminfo") == turns
