"""What somebody sees who starts the bot for the first time, at a terminal."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from lab.doubles.processes import ROOT, clean_environment, eventually, free_port

pytestmark = pytest.mark.slow

READY = re.compile(r"^Ready: (\S+)\r?$", re.MULTILINE)


class Terminal:
    """What stands on it so far."""

    def __init__(self) -> None:
        self.here, self.theirs = pty.openpty()
        self.shown = ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def close(self) -> None:
        os.close(self.theirs)
        self._reader.join(30)
        os.close(self.here)

    def _read(self) -> None:
        while True:
            try:
                self.shown += os.read(self.here, 65536).decode("utf-8", "replace")
            except OSError:  # nobody writes to it any more
                return


@contextmanager
def started(folder: Path, *command: str, **environment: str) -> Iterator[Terminal]:
    """The bot at a terminal."""
    terminal = Terminal()
    bot = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**clean_environment(), "DATA_DIR": str(folder), **environment},
        stdout=terminal.theirs,
        stderr=terminal.theirs,
        start_new_session=True,
    )
    try:
        yield terminal
    finally:
        bot.send_signal(signal.SIGTERM)
        bot.wait(60)
        terminal.close()


def test_the_address_stands_last_once_everything_works(tmp_path: Path) -> None:
    port = str(free_port())
    with started(tmp_path, sys.executable, "-m", "bot.process.supervisor", PORT=port) as terminal:
        eventually(lambda: READY.search(terminal.shown), within_s=180, what="Ready")
        so_far = terminal.shown
        (address,) = READY.findall(so_far)

        assert address == f"http://127.0.0.1:{port}"
        assert "Memo" in requests.get(f"{address}/sandbox/api/state", timeout=30).text
        assert requests.get(f"{address}/readyz", timeout=30).json()["ready"]
        assert so_far.splitlines()[-1] == f"Ready: {address}"
        assert "process.started  name=web" in so_far
        assert not [line for line in so_far.splitlines() if line.startswith("{")]


def test_who_wants_json_at_a_terminal_gets_it(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "bot.process.supervisor")
    options = {"PORT": str(free_port()), "LOG_FORMAT": "json"}
    with started(tmp_path, *command, **options) as terminal:
        eventually(lambda: '"event": "ready"' in terminal.shown, within_s=180, what="ready")
    assert all(line.startswith("{") for line in terminal.shown.splitlines())
