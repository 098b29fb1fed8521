"""The bot as one command: database, web process and workers, kept running and stopped together.

`python -m bot.process [GUNICORN ARGUMENTS]` is what `scripts/start` runs, and what gunicorn
becomes when it is started by hand with INLINE_WORKER=1. `--beside` runs the workers alone, beside
a web server that another program keeps.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bot.process import plan
from bot.process.log_lines import write_event
from bot.process.plan import ProcessPlan
from bot.process.programs import Program, die_with_parent
from bot.process.supervisor import Supervisor
from memory.backends.embedded import Launch, Server, open_lock
from memory.errors import ServerRefused

_PREDECESSOR_S = 20.0
_SILENT_S = 2.0
_LOOK_S = 0.1


def main(arguments: Sequence[str]) -> int:
    """Runs until it is told to stop."""
    os.umask(0o077)
    is_beside_server = list(arguments) == ["--beside"]
    if is_beside_server:
        die_with_parent(int(os.environ[plan.SUPERVISOR_VARIABLE]), signal.SIGTERM)
    process_plan = plan.read_plan(running=is_beside_server)
    gunicorn = tuple(arguments) or plan.GUNICORN_ARGUMENTS
    if not process_plan.workers:
        os.environ[plan.PLAN_VARIABLE] = process_plan.as_json()
        os.execv(sys.executable, [sys.executable, "-m", "gunicorn", *gunicorn])  # noqa: S606
    try:
        _be_the_only_one(Path(process_plan.data_dir), for_ever=is_beside_server)
        process_plan.board.clear()
        process_plan.say_remarks()
        if is_beside_server:
            programs = plan.worker_programs(process_plan, with_database=False)
        else:
            programs = _everything(process_plan, gunicorn)
    except ServerRefused as exc:
        sys.stderr.write(f"{exc}.\n")
        return 2
    return Supervisor(
        programs,
        process_plan.board,
        before_reload=partial(plan.plan_from_settings, running=True),
        when_ready=(lambda: None) if is_beside_server else process_plan.say_ready,
    ).run()


def _everything(process_plan: ProcessPlan, gunicorn: Sequence[str]) -> list[Program]:
    programs = [plan.web_program(process_plan, gunicorn), *plan.worker_programs(process_plan)]
    if process_plan.embedded:
        server = Server(Path(process_plan.data_dir))
        programs.insert(0, plan.database_program(server, _taken_over(server)))
    return programs


def _taken_over(server: Server) -> Launch:
    """How to start the server as our child; one that was left behind is stopped first."""
    server.join()
    deadline = time.monotonic() + _PREDECESSOR_S
    while time.monotonic() < deadline:
        with server.alone():
            if server.answers() and server.is_last():
                server.stop()
            if not server.answers():
                return server.prepare()
        time.sleep(_LOOK_S)
    raise ServerRefused(
        f"the database in {server.folder} is used by another program (a script, or a worker "
        "started by hand): end that first"
    )


def _be_the_only_one(data_dir: Path, *, for_ever: bool) -> None:
    """One bot in one DATA_DIR; one that is about to end is waited for. The lock goes with us."""
    lock = open_lock(data_dir, ".supervisor.lock")
    start = time.monotonic()
    deadline, is_said = start + _PREDECESSOR_S, for_ever
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not is_said and time.monotonic() > start + _SILENT_S:
                write_event("supervisor.waiting", reason=f"another bot runs in {data_dir}")
                is_said = True
            if not for_ever and time.monotonic() > deadline:
                raise ServerRefused(
                    f"another bot runs in {data_dir}: stop it first, or set another DATA_DIR"
                ) from None
            time.sleep(_LOOK_S)
        else:
            return


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
