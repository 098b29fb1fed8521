"""Workers that share what they have loaded: one process loads it, and forks each of them.

Loading what a worker needs takes a second or two of a processor. Where there are several workers a
supervisor (Linux) keeps a nursery, which has loaded it: a worker that died is there again after a
few hundredths of a second, and workers share the memory of what was loaded. A forked worker is the
supervisor's own child, and ends with it; the nursery may end without it.

`python -m bot.process.prefork` speaks with its supervisor over its standard input, line by
line: "ready", then for each JSON object of environment variables the id of a process with them.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from bot.process import lifeline

MODULE = "BOT_NURSERY"  # the module that is loaded; it has `start()`
_ANSWERS_WITHIN_S = 10.0
_REPARENTED_S = 0.001


class Forked:
    """A process as `subprocess.Popen` has it, as far as a supervisor looks."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None


class Nursery:
    """The supervisor's side: connections to its nurseries. The one that was ready last forks."""

    def __init__(self) -> None:
        self._lines: dict[int, socket.socket] = {}
        self._current = 0
        self._given: socket.socket | None = None

    def line(self) -> socket.socket:
        """A new nursery's standard input."""
        self._given, theirs = socket.socketpair()
        return theirs

    def started(self, pid: int) -> None:
        """The process that was given that line."""
        if self._given:
            for other in [one for one in self._lines if one != self._current]:
                self._lines.pop(other).close()
            self._lines[pid], self._given = self._given, None

    def is_ready(self, pid: int) -> bool:
        """Whether that nursery has loaded everything."""
        line = self._lines.get(pid)
        if line is None:
            return False
        line.setblocking(False)
        with contextlib.suppress(OSError):
            if line.recv(64).startswith(b"ready"):
                self._current = pid
                return True
        return False

    def fork(self, environment: Mapping[str, str]) -> Forked:
        """A new process. Raises `OSError` when the nursery gives none; it is ended then."""
        line = self._lines.get(self._current)
        if line is None:
            raise OSError("the nursery is not there")
        line.settimeout(_ANSWERS_WITHIN_S)
        try:
            line.sendall(json.dumps(dict(environment)).encode() + b"\n")
            return Forked(int(line.recv(64)))
        except (OSError, ValueError) as exc:
            self._lines.pop(self._current).close()
            raise OSError("the nursery does not answer") from exc


def main() -> int:
    """The nursery, until its supervisor hangs up; and each process that it forks, to its end."""
    parent = os.getppid()
    lifeline.tie(parent)
    module = importlib.import_module(os.environ.pop(MODULE))
    gc.collect()
    gc.freeze()  # what is there is touched by no collection, so it stays shared
    with socket.socket(fileno=os.dup(0)) as line, line.makefile("r", encoding="utf-8") as requests:
        line.sendall(b"ready\n")
        for environment in requests:
            if _is_new_process(line):
                os.environ.update(json.loads(environment))
                break
        else:
            return 0
    _begin(parent, module.__name__)
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


def _begin(parent: int, name: str) -> None:
    """The new process by itself: a session, no connection to the supervisor, a name of its own."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    between = os.getppid()
    while between != parent and os.getppid() == between:
        time.sleep(_REPARENTED_S)
    with contextlib.suppress(OSError, ValueError):
        _call_itself(name)


def _call_itself(name: str) -> None:
    """What `ps` shows is what the process is, and no nursery (proc(5): arg_start, arg_end)."""
    fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    begin, end = int(fields[45]), int(fields[46])
    command_line = "\0".join((sys.executable, "-m", name)).encode()
    if len(command_line) < end - begin:
        ctypes.memmove(begin, command_line.ljust(end - begin, b"\0"), end - begin)


if __name__ == "__main__":
    raise SystemExit(main())
