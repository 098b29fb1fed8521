"""When a program that ended is started again."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

from bot.process.programs import FORKED_MODULE, failures_after, restart_pause_s
from lab.doubles.processes import ROOT


def test_the_first_end_costs_nothing() -> None:
    assert restart_pause_s(failures_after(0, ran_s=3.0)) == 0.0


def test_who_ends_again_and_again_is_started_ever_more_slowly_but_always() -> None:
    failures, pauses = 0, []
    for _ in range(20):
        failures = failures_after(failures, ran_s=1.0)
        pauses.append(restart_pause_s(failures))
    assert pauses == sorted(pauses)
    assert pauses[-1] == 30.0


def test_five_seconds_of_work_make_good_for_earlier_failures() -> None:
    assert failures_after(9, ran_s=6.0) == 1


def test_a_fork_server_that_is_hung_up_on_while_it_loads_ends_quietly() -> None:
    ours, theirs = socket.socketpair()
    ours.close()
    with theirs:
        ended = subprocess.run(
            [sys.executable, "-m", "bot.process.programs"],
            cwd=ROOT,
            env={**os.environ, FORKED_MODULE: "json"},
            stdin=theirs.fileno(),
            capture_output=True,
            timeout=60,
        )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
