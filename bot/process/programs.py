"""Starts the programs of a supervisor, forks workers, and ends children with their parent.

`python -m bot.process.programs` is the fork server: it loads a worker's modules once and forks
each worker, so that they share memory. It speaks with its supervisor over standard input:
"ready", then for each JSON object of environment variables the id of a process. Linux ends a
child with its parent (prctl(2), PR_SET_PDEATHSIG); elsewhere a thread looks who the parent is."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, NamedTuple

_PAUSES_S = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
_SETTLED_S = 5.0

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PARENT_LOOK_S = 0.5
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None

FORKED_MODULE = "BOT_NURSERY"  # the module that is loaded; it has `start()`
_ANSWERS_WITHIN_S = 10.0
_REPARENTED_S = 0.001


def _nothing() -> None:
    pass


class Program(NamedTuple):
    """One process that has to be there.

    It starts once the programs named in `after` are ready, and stops once those of higher stages
    are gone. `prepare` runs before each start; `ready` is asked with the process id. A required
    program that ends before it was ever ready ends everything. `reload` is the signal that makes
    it load its code and settings anew; None: a new process takes its place. `keeps`: it is such a
    fork server; `forked_by`: the fork server that forks it, with these `arguments` for who asks
    what it is.
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
    is_required: bool = False
    stop: signal.Signals = signal.SIGTERM
    grace_s: float = 12.0
    orphan_signal: signal.Signals = signal.SIGKILL
    reload: signal.Signals | None = None
    alarm: signal.Signals | None = None
    keeps: ForkServer | None = None
    forked_by: ForkServer | None = None

    def spawn(self) -> subprocess.Popen[bytes] | ForkedProcess:
        """Starts it in a session of its own: what a terminal sends is for the supervisor alone."""
        if self.forked_by:
            return self.forked_by.fork(self.environment or {})
        if self.keeps is None:
            return self._open(subprocess.DEVNULL)
        with self.keeps.line() as line:
            process = self._open(line.fileno())
        self.keeps.adopt(process.pid)
        return process

    def _open(self, stdin: int) -> subprocess.Popen[bytes]:
        out = self.log() if self.log else None
        try:
            return subprocess.Popen(  # noqa: S603
                self.arguments,
                stdin=stdin,
                stdout=out,
                stderr=out,
                env=self.environment,
                start_new_session=True,
                preexec_fn=parent_death_hook(os.getpid(), self.orphan_signal),
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
        process: subprocess.Popen[bytes] | ForkedProcess,
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


def restart_pause_s(failures: int) -> float:
    """Seconds before the next start: at once after the first failure, then slower and slower."""
    return _PAUSES_S[min(failures, len(_PAUSES_S)) - 1] if failures else 0.0


def failures_after(failures: int, ran_s: float) -> int:
    """Failures in a row, counting the one just now; five seconds of work make good for earlier."""
    return 1 if ran_s >= _SETTLED_S else failures + 1


def parent_death_hook(parent: int, number: int = signal.SIGKILL) -> Callable[[], None] | None:
    """For `subprocess`, as `preexec_fn`: what it starts gets signal `number` when `parent` ends.

    None where the kernel cannot do this: there the program has to call `tie` itself.
    """
    if _libc is None:
        return None
    libc = _libc

    def bind() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, int(number))
        if os.getppid() != parent:
            os._exit(1)

    return bind


def die_with_parent(parent: int, number: int = signal.SIGKILL) -> None:
    """This process gets signal `number` when `parent`, which must be its parent, ends."""
    bind = parent_death_hook(parent, number)
    if bind:
        bind()
    else:
        threading.Thread(target=_watch, args=(parent, number), daemon=True).start()


def adopt_orphans() -> bool:
    """What this process's children leave behind becomes its own child, where the kernel can."""
    return _libc is not None and _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def _watch(parent: int, number: int) -> None:
    while os.getppid() == parent:
        time.sleep(_PARENT_LOOK_S)
    os.kill(os.getpid(), number)


class ForkedProcess:
    """A process as `subprocess.Popen` has it, as far as a supervisor looks."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None


class ForkServer:
    """The supervisor's side: connections to its nurseries. The one that was ready last forks."""

    def __init__(self) -> None:
        self._lines: dict[int, socket.socket] = {}
        self._current = 0
        self._unclaimed_line: socket.socket | None = None

    def line(self) -> socket.socket:
        """A new fork server's standard input."""
        self._unclaimed_line, theirs = socket.socketpair()
        return theirs

    def adopt(self, pid: int) -> None:
        """The process that was given that line."""
        if self._unclaimed_line:
            for other in [one for one in self._lines if one != self._current]:
                self._lines.pop(other).close()
            self._lines[pid], self._unclaimed_line = self._unclaimed_line, None

    def is_ready(self, pid: int) -> bool:
        """Whether that fork server has loaded everything."""
        line = self._lines.get(pid)
        if line is None:
            return False
        line.setblocking(False)
        with contextlib.suppress(OSError):
            if line.recv(64).startswith(b"ready"):
                self._current = pid
                return True
        return False

    def fork(self, environment: Mapping[str, str]) -> ForkedProcess:
        """A new process. Raises `OSError` when the fork server gives none; it is ended then."""
        line = self._lines.get(self._current)
        if line is None:
            raise OSError("the fork server is not there")
        line.settimeout(_ANSWERS_WITHIN_S)
        try:
            line.sendall(json.dumps(dict(environment)).encode() + b"\n")
            return ForkedProcess(int(line.recv(64)))
        except (OSError, ValueError) as exc:
            self._lines.pop(self._current).close()
            raise OSError("the fork server does not answer") from exc


def run_fork_server() -> int:
    """The fork server, until its supervisor hangs up; and each process that it forks, to its
    end."""
    parent = os.getppid()
    die_with_parent(parent)
    module = importlib.import_module(os.environ.pop(FORKED_MODULE))
    gc.collect()
    gc.freeze()  # what is there is touched by no collection, so it stays shared
    with socket.socket(fileno=os.dup(0)) as line, line.makefile("r", encoding="utf-8") as requests:
        try:
            line.sendall(b"ready\n")
        except OSError:
            return 0  # another one was begun while this one loaded
        for environment in requests:
            if _is_new_process(line):
                os.environ.update(json.loads(environment))
                break
        else:
            return 0
    _begin_forked(parent, module.__name__)
    module.start()
    return 0


def _is_new_process(line: socket.socket) -> bool:
    """Forks by way of a process that ends at once, so that the new one falls to the supervisor."""
    if between := os.fork():
        os.waitpid(between, 0)
        return False
    if pid := os.fork():
        line.sendall(f"{pid}\n".encode())
        os._exit(0)
    return True


def _begin_forked(parent: int, name: str) -> None:
    """The new process by itself: a session, no connection to the supervisor, a name of its own."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    between = os.getppid()
    while between != parent and os.getppid() == between:
        time.sleep(_REPARENTED_S)
    with contextlib.suppress(OSError, ValueError):
        _rename_process(name)


def _rename_process(name: str) -> None:
    """What `ps` shows is what the process is, and no fork server (proc(5): arg_start, arg_end)."""
    fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    begin, end = int(fields[45]), int(fields[46])
    command_line = "\0".join((sys.executable, "-m", name)).encode()
    if len(command_line) < end - begin:
        ctypes.memmove(begin, command_line.ljust(end - begin, b"\0"), end - begin)


if __name__ == "__main__":
    raise SystemExit(run_fork_server())
