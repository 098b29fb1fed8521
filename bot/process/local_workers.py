"""Starts a supervisor for the workers beside a web server that has none.

The first web process starts a supervisor for the workers alone; those of further web processes
wait in case it ends. They end with their web process."""

from __future__ import annotations

import os
import subprocess
import sys

from bot.process import plan

_STOP_S = 12.0


class LocalWorkers:
    """The supervisor of the workers, while this process lives."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bot.process", "--beside"],
            env={**os.environ, plan.SUPERVISOR_VARIABLE: str(os.getpid())},
            start_new_session=True,
        )

    def stop(self) -> None:
        """Lets running turns finish, or hands them back; returns within twelve seconds."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
