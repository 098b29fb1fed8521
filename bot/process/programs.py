"""What a supervisor runs, and when it starts it again: data and one rule."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import IO, Any, NamedTuple

from bot.process import lifeline
from bot.process.prefork import Forked, Nursery

_PAUSES_S = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
_SETTLED_S = 5.0


def _nothing() -> None:
    pass


class Program(NamedTuple):
    """One process that has to be there.

    It starts once the programs named in `after` are ready, and stops once those of higher stages
    are gone. `prepare` runs before each start; `ready` is asked with the process id. A `required`
    program that ends before it was ever ready ends everything. `reload` is the signal that makes
    it load its code and settings anew; None: a new process takes its place. `keeps`: it is such a
    nursery; `forked_by`: the nursery that forks it, with these `arguments` for who asks what it is.
    `alarm` is the signal that tells it that another of its stage fell.
    """

    name: str
    arguments: tuple[str, ...]
    stage: int
    after: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None
    options: Mapping[str, Any] = MappingProxyType({})
    log: Callable[[], IO[bytes]] | None = None
    prepare: Callable[[], None] = _nothing
    ready: Callable[[int], bool] = bool
    required: bool = False
    stop: signal.Signals = signal.SIGTERM
    grace_s: float = 12.0
    orphaned: signal.Signals = signal.SIGKILL
    reload: signal.Signals | None = None
    alarm: signal.Signals | None = None
    keeps: Nursery | None = None
    forked_by: Nursery | None = None

    def spawn(self) -> subprocess.Popen[bytes] | Forked:
        """Starts it in a session of its own: what a terminal sends is for the supervisor alone."""
        if self.forked_by:
            return self.forked_by.fork(self.environment or {})
        if self.keeps is None:
            return self._started(subprocess.DEVNULL)
        with self.keeps.line() as line:
            process = self._started(line.fileno())
        self.keeps.started(process.pid)
        return process

    def _started(self, stdin: int) -> subprocess.Popen[bytes]:
        out = self.log() if self.log else None
        try:
            return subprocess.Popen(  # noqa: S603
                self.arguments,
                stdin=stdin,
                stdout=out,
                stderr=out,
                env=self.environment,
                start_new_session=True,
                preexec_fn=lifeline.in_child(os.getpid(), self.orphaned),
                **self.options,
            )
        finally:
            if out:
                out.close()


class Child:
    """A running process of a program. `replaces`: the process that ends once this one is ready."""

    def __init__(
        self,
        program: Program,
        process: subprocess.Popen[bytes] | Forked,
        started_at: float,
        replaces: int,
    ) -> None:
        self.program = program
        self.process = process
        self.started = started_at
        self.replaces = replaces
        self.is_ready = False
        self.kill_at: float | None = None

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def leaving(self) -> bool:
        """It was told to end."""
        return self.kill_at is not None

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def leave(self, now: float) -> None:
        """Tells it to end; after its grace it is killed by whoever looks at `kill_at`."""
        if not self.leaving:
            self.signal(self.program.stop)
            self.kill_at = now + self.program.grace_s


def pause_s(failures: int) -> float:
    """Seconds before the next start: at once after the first failure, then slower and slower."""
    return _PAUSES_S[min(failures, len(_PAUSES_S)) - 1] if failures else 0.0


def failures_after(failures: int, ran_s: float) -> int:
    """Failures in a row, counting the one just now; five seconds of work make good for earlier."""
    return 1 if ran_s >= _SETTLED_S else failures + 1
