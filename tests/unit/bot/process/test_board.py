"""What processes know of each other through the board."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bot.process.plan import RunDirectory
from bot.text.languages import Sentence

HOLDS = """
import sys
from pathlib import Path
from bot.process.plan import RunDirectory
held = RunDirectory(Path(sys.argv[1])).announce(2)
print("held", flush=True)
sys.stdin.read()
"""


def says(trouble: Sentence | None, en: str, zh: str) -> bool:
    return trouble is not None and en in trouble.en and zh in trouble.zh


def test_a_killed_worker_is_seen_at_once(tmp_path: Path) -> None:
    board = RunDirectory(tmp_path)
    board.clear()
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout
    process.stdout.readline()
    assert board.trouble(2) is None
    assert board.has_announced(process.pid)
    assert board.alive() == 1
    process.kill()
    process.communicate()
    assert says(board.trouble(2), "not running", "没有运行")
    assert board.alive() == 0


def test_a_worker_that_does_not_move_is_named(tmp_path: Path) -> None:
    board = RunDirectory(tmp_path)
    board.clear()
    presence = board.announce(1)
    (file,) = tmp_path.glob("run/worker-*")
    os.utime(file, (0, 0))
    assert says(board.trouble(1), "has not moved", "没有动静")
    presence.beat()
    assert board.trouble(1) is None
    presence.withdraw()
    assert says(board.trouble(1), "not running", "没有运行")


def test_what_an_ended_process_left_is_forgotten(tmp_path: Path) -> None:
    board = RunDirectory(tmp_path)
    board.clear()
    (board.metrics / "gauge_livesum_77.db").touch()
    (board.metrics / "counter_77.db").touch()
    board.forget(77)
    assert [file.name for file in board.metrics.iterdir()] == ["counter_77.db"]
