"""Starts Python modules, each in a process of its own that has nothing to import.

Most of the time of a start goes into imports. A helper process, started with the first module of a
test process, does them once and forks: the child runs the module as `python -m` would. Setup has a
helper of its own, since it alone needs the platform's whole client.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

from bot.process.plan import PLAN_VARIABLE
from lab.doubles import processes
from lab.doubles.processes import ROOT

_PROGRAMS = ("bot.worker", "gunicorn", "sandbox", "sandbox.model.model")
_IMPORTED = (
    "bot.process.logs",  # before all that log
    "bot.worker",
    "app",
    "bot.intake.receiving",
    "bot.operations.doctor.checks",
    "bot.operations.startup_checks",
    "gunicorn.glogging",
    "gunicorn.app.wsgiapp",
    "memory.backends.supabase",
    "sandbox.__main__",
    "sandbox.model.model",
    "scripts.bot",
    "scripts.check_memory",
    "scripts.console",
    "scripts.decisions",
    "scripts.memory",
    "scripts.monitor",
    "scripts.operating.importing",
    "scripts.queue",
    "scripts.replay",
    "scripts.timers",
)
_IMPORTED_FOR = {"scripts.setup": ("scripts.connecting.steps", "lark_oapi.scene.registration")}
_FDS = 3
_LONGEST_REQUEST = 1 << 20


class Forked:
    """A process that the helper forked; it has the methods of `subprocess.Popen`."""

    def __init__(
        self, module: Sequence[str], env: Mapping[str, str], cwd: Path, fds: Sequence[int]
    ) -> None:
        self.args, self.returncode = module, None
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(_forking_process(_IMPORTED_FOR.get(module[0], ())))
        request = {"arguments": module, "env": dict(env), "cwd": str(cwd)}
        socket.send_fds(self._connection, [json.dumps(request).encode()], fds)
        self._connection.shutdown(socket.SHUT_WR)
        self.pid = int(self._line())

    def poll(self) -> int | None:
        """Returns the exit status, negative for a signal, or None while the process runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the end. Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            self._connection.settimeout(timeout)
            try:
                self.returncode = int(self._line())
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(list(self.args), timeout or 0) from None
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Sends a signal to a process that still runs."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Sends SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Sends SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _line(self) -> str:
        """Returns the next of the two numbers; each comes in one piece of sixteen bytes."""
        return self._connection.recv(16, socket.MSG_WAITALL).decode()

    returncode: int | None


def launch(
    command: Sequence[str], env: Mapping[str, str], cwd: Path, out: IO[bytes]
) -> processes.StartedProcess:
    """Starts a program of this repository by a fork, and everything else as usual."""
    if command[:2] != [sys.executable, "-m"] or command[2] not in _PROGRAMS:
        return processes.spawn(command, env, cwd, out)
    if command[2] == "gunicorn":
        env = _with_plan(env, cwd)
    with Path(os.devnull).open("rb") as nothing:
        fds = [nothing.fileno(), out.fileno(), out.fileno()]
        return Forked(command[2:], env, cwd, fds)


def _with_plan(env: Mapping[str, str], cwd: Path) -> Mapping[str, str]:
    """Hands the plan over, as the supervisor does. Where the settings are refused, the process
    itself shall say so."""
    checked = run_module("bot.operations.startup_checks", env=env, cwd=cwd)
    return {**env, PLAN_VARIABLE: checked.stdout} if checked.returncode == 0 else env


def run_script(script: str, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """Returns the result of `python -m scripts.SCRIPT ARGUMENTS`."""
    return run_module(f"scripts.{script}", *arguments, **more)


def run_module(
    *command: str,
    env: Mapping[str, str],
    cwd: Path = ROOT,
    stdin: str = "",
    timeout: float = 180,
) -> subprocess.CompletedProcess[str]:
    """Returns the result of `python -m COMMAND` in such an environment."""
    with (
        tempfile.TemporaryFile("w+b") as given,
        tempfile.TemporaryFile("w+b") as out,
        tempfile.TemporaryFile("w+b") as err,
    ):
        given.write(stdin.encode())
        given.seek(0)
        fds = [file.fileno() for file in (given, out, err)]
        status = Forked(command, env, cwd, fds).wait(timeout)
        return subprocess.CompletedProcess([*command], status, _text_of(out), _text_of(err))


def _text_of(file: Any) -> str:
    file.seek(0)
    return str(file.read().decode("utf-8", "replace"))


@functools.cache
def _forking_process(more: tuple[str, ...]) -> str:
    """Returns the address of the helper that has `more` imported. It ends with this process, even
    if that is killed: then its standard input is at its end."""
    folder = tempfile.mkdtemp(prefix="forks-")
    address = f"{folder}/socket"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.forking", address, *more],
        cwd=ROOT, env=processes.clean_environment(), stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    said = process.stdout.readline()
    assert said == b"ready\n", said
    atexit.register(_end, process)
    return address


def _end(process: subprocess.Popen[bytes]) -> None:
    process.communicate()  # closes its standard input


def _serve(address: str, *more: str) -> None:
    """Forks for every request; returns in the child that has run a module, and at the end."""
    gc.disable()  # hardly anything that an import leaves is garbage
    for module in (*_IMPORTED, *more):
        importlib.import_module(module)
    gc.enable()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    print("ready", flush=True)
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:  # until its end
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _answer(connection)
            return
        connection.close()
    shutil.rmtree(Path(address).parent)


def _answer(connection: socket.socket) -> None:
    """Runs one module, and reports its process id and then its exit status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    data, fds = _received(connection)
    forked = os.fork()
    if forked == 0:
        connection.close()
        _run(json.loads(data), fds)
        return
    for fd in (*range(_FDS), *fds):
        os.close(fd)
    _report(connection, forked)
    _, ended = os.waitpid(forked, 0)
    _report(connection, os.waitstatus_to_exitcode(ended))
    os._exit(0)


def _report(connection: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):
        connection.sendall(b"%16d" % number)


def _received(connection: socket.socket) -> tuple[bytes, array.array[int]]:
    data, fds, _, _ = socket.recv_fds(connection, _LONGEST_REQUEST, _FDS)
    while more := connection.recv(_LONGEST_REQUEST):
        data += more
    return data, array.array("i", fds)


def _run(request: Mapping[str, Any], fds: array.array[int]) -> None:
    os.setsid()
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    os.chdir(request["cwd"])
    module, *_ = sys.argv = request["arguments"]
    is_package = hasattr(sys.modules.get(module), "__path__")
    sys.modules.pop(f"{module}.__main__" if is_package else module, None)  # it runs as __main__
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as exc:
        _end_quickly(exc.code)
    _end_quickly(None)


def _end_quickly(code: object) -> NoReturn:
    """Ends as the interpreter does, but leaves the objects: each page that it freed one on would be
    copied first, since the helper has the same."""
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(code or 0)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
