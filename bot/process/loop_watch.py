"""Watches an event loop for whatever blocks it: a line in the log, a metric, a note for the doctor.

A thread looks ten times a second whether the loop is late. A pattern of `re` holds the interpreter
until it ends, so the thread sees the stack right after that: at the function that called it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

from bot.process import metrics
from bot.process.lines import say

BLOCKED_S = 0.5
_BEAT_S = 0.1
_LINE_EVERY_S = 10.0
_ROOT = Path(__file__).resolve().parents[2]
_FRAMES = 4
_KEPT = 50
_DAY_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class LoopBlock:
    """The loop was late by `seconds`; its thread computed for `cpu_s` of them.

    `at` is seconds since epoch.
    """

    at: float
    seconds: float
    cpu_s: float
    where: str

    @property
    def is_ours(self) -> bool:
        """False if the loop waited most of the time, for the processor or for another thread."""
        return self.cpu_s >= self.seconds / 2


class LoopWatch:
    """One loop. `folder` is where the doctor looks; `clock` is monotonic seconds."""

    def __init__(
        self,
        folder: Path | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        write: Callable[..., None] = say,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._write = write
        self._busy_since: float | None = None
        self._cpu_s = 0.0
        self._where = ""
        self._ended: deque[LoopBlock] = deque(maxlen=_KEPT)
        self._unsaid: list[LoopBlock] = []
        self._said_at = -_LINE_EVERY_S
        self._noted: deque[LoopBlock] = deque(maxlen=_KEPT)
        self._thread = 0

    # In the loop's thread

    def begin(self) -> None:
        """Watches the thread that calls this."""
        self._thread = threading.get_ident()
        threading.Thread(target=self._keep_looking, name="loop watch", daemon=True).start()

    def follow(self, loop: asyncio.AbstractEventLoop) -> None:
        """Watches an asyncio loop by a timer of its own; call this in its thread."""
        self.begin()
        self._beat(loop)

    def busy(self, since: float | None = None) -> None:
        """The loop works from now on, or from `since` unless it calls `back` before."""
        self._cpu_s = time.thread_time()
        self._busy_since = self._clock() if since is None else since

    def back(self) -> None:
        """The loop has got through what it had to do."""
        since, self._busy_since = self._busy_since, None
        where, self._where = self._where, ""
        if since is not None and (seconds := self._clock() - since) > BLOCKED_S:
            cpu_s = time.thread_time() - self._cpu_s
            block = LoopBlock(round(time.time()), round(seconds, 2), round(cpu_s, 2), where)
            self._ended.append(block)

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        self.back()
        self.busy(self._clock() + _BEAT_S)
        loop.call_later(_BEAT_S, self._beat, loop)

    # In the watching thread

    def _keep_looking(self) -> None:
        while True:
            time.sleep(_BEAT_S)
            self.look(sys._current_frames().get(self._thread))
            self.report()

    def look(self, frame: FrameType | None) -> None:
        """Notes where the loop is if it is late; for a longer block, where it was last."""
        since = self._busy_since
        if since is not None and self._clock() - since > BLOCKED_S / 2:
            self._where = place_of(frame) or self._where

    def report(self) -> None:
        """Counts what has ended, and says the longest of it: at most one line in ten seconds."""
        while self._ended:
            block = self._ended.popleft()
            metrics.LOOP_BLOCKED.observe(block.seconds)
            self._unsaid.append(block)
        if not self._unsaid or self._clock() - self._said_at < _LINE_EVERY_S:
            return
        self._said_at = self._clock()
        longest = max(self._unsaid, key=lambda one: one.seconds)
        fields = asdict(longest)
        fields.pop("at")
        self._write("loop.blocked", level="warning", **fields, blocks=len(self._unsaid))
        self._unsaid = []
        self._noted.append(longest)
        self._note()

    def _note(self) -> None:
        if self._folder is None:
            return
        text = "\n".join(json.dumps(asdict(one)) for one in self._noted)
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            name = f"blocked-{threading.get_native_id()}"
            (self._folder / name).write_text(text, encoding="utf-8")


def place_of(frame: FrameType | None) -> str:
    """The innermost functions of our code on the stack, as `module.function < caller`."""
    frames: list[str] = []
    while frame is not None and len(frames) < _FRAMES:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(_ROOT) and ".venv" not in path.parts:
            module = path.relative_to(_ROOT).with_suffix("").as_posix().replace("/", ".")
            frames.append(f"{module}.{frame.f_code.co_name}")
        frame = frame.f_back
    return " < ".join(frames)


def blocks_of_today(folder: Path, now_s: float) -> list[LoopBlock]:
    """What the loops of this machine noted within a day. Older notes are removed."""
    return [one for file in folder.glob("blocked-*") for one in _read(file, now_s)]


def _read(file: Path, now_s: float) -> Iterable[LoopBlock]:
    try:
        if now_s - file.stat().st_mtime > _DAY_S:
            file.unlink(missing_ok=True)
            return []
        blocks = [LoopBlock(**json.loads(line)) for line in file.read_text("utf-8").splitlines()]
    except (OSError, ValueError, TypeError):
        return []
    return [one for one in blocks if now_s - one.at <= _DAY_S]
