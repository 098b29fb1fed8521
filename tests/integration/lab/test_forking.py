"""Tests start the bot's programs by forks; the process that forks goes with the one that asked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from lab.doubles.processes import ROOT, clean_environment, eventually

ASKS = """
import sys, time
from pathlib import Path
from tests.support.forking import run_script

print(run_script("queue", "--help", env={"PATH": ""}).returncode, flush=True)
time.sleep(600)
"""


def test_the_process_that_forks_ends_with_a_killed_test_process(tmp_path: Path) -> None:
    env = {**clean_environment(), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", ASKS], cwd=ROOT, env=env, stdout=subprocess.PIPE
    ) as asks:
        assert asks.stdout
        assert asks.stdout.readline() == b"0\n"
        (forks,) = psutil.Process(asks.pid).children()
        assert list(tmp_path.iterdir())
        asks.kill()

    eventually(lambda: not forks.is_running(), what="the helper ends")
    assert not list(tmp_path.iterdir())
