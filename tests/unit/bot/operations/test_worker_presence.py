"""A worker's share of Feishu's limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.operations.maintenance import WorkerPresence
from bot.process import plan
from bot.process.plan import RunDirectory
from bot.settings import Settings


def test_a_worker_that_has_not_said_yet_that_it_lives_has_a_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(plan.SLOT_VARIABLE, "1")
    RunDirectory(tmp_path).clear()
    standing = WorkerPresence(Settings(data_dir=tmp_path))

    standing.share_with(4)
    assert standing.pace.share == 0.25
    standing.share_with(0)
    assert standing.pace.share == 1.0
