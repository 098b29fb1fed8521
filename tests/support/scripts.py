"""Runs the operators' scripts, each in a process of its own that has nothing to import.

Most of the time of a script goes into its imports. A helper process, started with the first script
of a test process, has them done and forks: the child runs the module as `python -m` would. Setup
has a helper of its own, since it alone needs the platform's whole client.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import functools
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from lab.doubles.processes import ROOT

_IMPORTED = (
    "scripts.bot",
    "scripts.check_memory",
    "scripts.console",
    "scripts.conversations",
    "scripts.decisions",
    "scripts.feedback",
    "scripts.memory",
    "scripts.monitor",
    "scripts.operating.importing",
    "scripts.queue",
    "scripts.replay",
    "scripts.timers",
    "bot.operations.doctor.checks",
    "memory.accounts.users",
)
_IMPORTED_FOR = {"setup": ("scripts.connecting.steps", "lark_oapi.scene.registration")}
_FDS = 3
_LONGEST_REQUEST = 1 << 20


def run_script(
    script: str,
    *arguments: str,
    env: Mapping[str, str],
    cwd: Path = ROOT,
    stdin: str = "",
    timeout: float = 180,
) -> subprocess.CompletedProcess[str]:
    """What `python -m scripts.SCRIPT ARGUMENTS` does in such an environment."""
    request = {"module": f"scripts.{script}", "arguments": arguments, "env": dict(env),
               "cwd": str(cwd)}  # fmt: skip
    with (
        tempfile.TemporaryFile("w+b") as given,
        tempfile.TemporaryFile("w+b") as out,
        tempfile.TemporaryFile("w+b") as err,
        socket.socket(socket.AF_UNIX) as connection,
    ):
        given.write(stdin.encode())
        given.seek(0)
        connection.settimeout(timeout)
        connection.connect(_forking_process(_IMPORTED_FOR.get(script, ())))
        fds = [file.fileno() for file in (given, out, err)]
        socket.send_fds(connection, [json.dumps(request).encode()], fds)
        connection.shutdown(socket.SHUT_WR)
        status = int(connection.makefile().read())
        return subprocess.CompletedProcess(
            [script, *arguments], status, _text_of(out), _text_of(err)
        )


def _text_of(file: Any) -> str:
    file.seek(0)
    return str(file.read().decode("utf-8", "replace"))


@functools.cache
def _forking_process(more: tuple[str, ...]) -> str:
    """The address of the helper process that has `more` imported; it ends with this one."""
    folder = tempfile.mkdtemp(prefix="scripts-")
    address = f"{folder}/socket"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.scripts", address, *more],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"
    atexit.register(process.kill)
    return address


def _serve(address: str, *more: str) -> NoReturn:
    for module in (*_IMPORTED, *more):
        importlib.import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _answer(connection)
        connection.close()


def _answer(connection: socket.socket) -> NoReturn:
    """Runs one script and tells its exit status, negative for a signal."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    data, fds = _received(connection)
    script = os.fork()
    if script == 0:
        connection.close()
        _run(json.loads(data), fds)
    _, ended = os.waitpid(script, 0)
    with contextlib.suppress(OSError):
        connection.sendall(str(os.waitstatus_to_exitcode(ended)).encode())
    os._exit(0)


def _received(connection: socket.socket) -> tuple[bytes, array.array[int]]:
    data, fds, _, _ = socket.recv_fds(connection, _LONGEST_REQUEST, _FDS)
    while more := connection.recv(_LONGEST_REQUEST):
        data += more
    return data, array.array("i", fds)


def _run(request: Mapping[str, Any], fds: array.array[int]) -> NoReturn:
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    sys.argv = [request["module"], *request["arguments"]]
    sys.modules.pop(request["module"], None)  # it runs as __main__
    status: object = 0
    try:
        runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
    except SystemExit as exc:
        status = exc.code
    except BaseException:  # noqa: BLE001 - as Python's own last resort
        traceback.print_exc()
        status = 1
    if isinstance(status, str):
        print(status, file=sys.stderr)
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(int(status or 0))  # type: ignore[call-overload]


if __name__ == "__main__":
    _serve(*sys.argv[1:])
