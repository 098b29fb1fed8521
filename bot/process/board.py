"""What the processes of one command know of each other: a folder in `DATA_DIR`, emptied at start.

A worker that works holds the lock of a file of its own and touches it. The kernel takes the lock
back from whoever is killed, so a look tells the living from the dead at once, and the file's age
tells those that hang.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bot.text.languages import Sentence

BEAT_S = 2.0
_HANGS_AFTER_S = 15.0


class Attendance:
    """One worker's word that it lives; withdrawn by `withdraw`, or with the process."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._held = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._held, fcntl.LOCK_EX)

    def beat(self) -> None:
        os.utime(self._held)

    def withdraw(self) -> None:
        self._file.unlink(missing_ok=True)
        os.close(self._held)


class Board:
    """The folder. Every process of one `DATA_DIR` finds it."""

    def __init__(self, data_dir: Path) -> None:
        self.folder = data_dir / "run"

    @property
    def metrics(self) -> Path:
        """Where each process keeps its numbers (PROMETHEUS_MULTIPROC_DIR)."""
        return self.folder / "metrics"

    @property
    def pace(self) -> Path:
        """When which call to Feishu may leave, for all workers."""
        return self.folder / "pace"

    def clear(self) -> None:
        """Forgets everything; for whoever starts the others."""
        import shutil  # half a megabyte, for who stays for good, once

        shutil.rmtree(self.folder, ignore_errors=True)
        self.metrics.mkdir(mode=0o700, parents=True)

    @property
    def web_is_ready(self) -> bool:
        """Whether a web process has loaded the application."""
        return (self.folder / "web").exists()

    def open_web(self) -> None:
        """A web process has loaded the application."""
        (self.folder / "web").touch()

    def announce(self, slot: int) -> Attendance:
        """This process works as worker `slot`, counted from 1."""
        return Attendance(self.folder / f"worker-{slot}-{os.getpid()}")

    def announced(self, pid: int) -> bool:
        """Whether that worker has said that it works."""
        return any(self.folder.glob(f"worker-*-{pid}"))

    def forget(self, pid: int) -> None:
        """What an ended process leaves: its word, and numbers that hold only while it lives."""
        with contextlib.suppress(OSError):
            for file in [
                *self.folder.glob(f"worker-*-{pid}"),
                *self.metrics.glob(f"gauge_live*_{pid}.db"),
            ]:
                file.unlink(missing_ok=True)

    def alive(self) -> int:
        """How many workers live, those that hang included."""
        return sum(1 for _ in self._living())

    def trouble(self, slot: int) -> Sentence | None:
        """Why worker `slot` does not work; None when it does."""
        from bot.text.languages import Sentence  # the supervisor, which never asks, stays small

        ages = [age for of, age in self._living() if of == slot]
        if not ages:
            return Sentence(
                "not running; it is being restarted, see process.ended in the log",
                "没有运行，正在重新启动，请查看日志中的 process.ended",
            )
        if (still := min(ages)) > _HANGS_AFTER_S:
            return Sentence(
                f"it has not moved for {still:.0f} s: see its lines in the log",
                f"已 {still:.0f} 秒没有动静：请查看它的日志",
            )
        return None

    def _living(self) -> Iterator[tuple[int, float]]:
        """(slot, seconds since it moved) of every worker whose process is there."""
        for file in self.folder.glob("worker-*"):
            with contextlib.suppress(OSError, ValueError):
                if _is_held(file):
                    slot = int(file.name.split("-")[1])
                    yield slot, max(0.0, time.time() - file.stat().st_mtime)


def _is_held(file: Path) -> bool:
    looking = os.open(file, os.O_RDONLY)
    try:
        fcntl.flock(looking, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(looking)
    return False
