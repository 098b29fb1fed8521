"""The bot as one command: database, web process and workers, kept running and stopped together.

`python -m bot.process.supervisor [GUNICORN ARGUMENTS]` is what `scripts/start` runs, and what
gunicorn becomes when it is started by hand with INLINE_WORKER=1. `--beside` runs the workers alone,
beside a web server that another program keeps.

Programs are started in order, and started again when they die. SIGTERM and SIGINT stop all of them
in order and let running work finish; a second one kills what is left. SIGHUP loads code and
settings anew, one process after the other, without a gap. Everything that is started ends with the
supervisor, however it ends.

`LocalWorkers` runs a supervisor for the workers alone, beside a web server that has none. Each web
process starts one; all but the first wait in case the first one ends.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from bot.process import plan
from bot.process.log_lines import write_event
from bot.process.plan import ProcessPlan, RunDirectory
from bot.process.programs import Child, Program, die_with_parent, failures_after, restart_pause_s
from memory.backends.embedded import Launch, Server, open_lock
from memory.errors import ServerRefused

UNUSABLE = 2  # the status of a program that cannot run with these settings
_LOOK_S = 1.0
_WATCHED_S = 0.05
_STOP_S = 12.0
_PREDECESSOR_S = 20.0
_SILENT_S = 2.0
_RETRY_S = 0.1


class Supervisor:
    """`before_reload` is called at SIGHUP; when it raises, everything stays as it is.
    `when_ready` is called once, when every program was ready."""

    def __init__(
        self,
        programs: Sequence[Program],
        board: RunDirectory,
        *,
        before_reload: Callable[[], object] = lambda: None,
        when_ready: Callable[[], object] = lambda: None,
    ) -> None:
        self._board = board
        self._before_reload = before_reload
        self._when_ready = when_ready
        self._due = {program.name: 0.0 for program in programs}
        self._programs = {program.name: program for program in programs}
        self._failures: dict[str, int] = {}
        self._children: dict[int, Child] = {}
        self._proven: set[str] = set()  # programs that were ready once
        self._to_replace: deque[int] = deque()
        self._signals: deque[int] = deque()
        self._status: int | None = None

    def run(self) -> int:
        """Returns the exit status when everything has stopped."""
        wake = self._listen()
        while self._status is None or self._children:
            select.select([wake], [], [], 0 if self._signals else self._pause_s())
            _drain(wake)
            self._bury()
            while self._signals:
                self._obey(self._signals.popleft())
            if self._status is None:
                self._look_who_is_ready()
                self._start_due()
                self._replace_next()
            else:
                self._stop_next()
            self._kill_overdue()
        write_event("supervisor.stopped", status=self._status)
        return self._status

    def _listen(self) -> int:
        """Signals are kept until the loop comes to them; returns what becomes readable then."""
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, _: self._signals.append(number))
        signal.signal(signal.SIGCHLD, lambda *_: None)  # only wakes the loop
        return reading

    def _pause_s(self) -> float:
        """Until there may be something to do; what starts or stops is watched closely."""
        if self._status is not None or any(
            child.leaving or not child.is_ready for child in self._children.values()
        ):
            return _WATCHED_S
        return max(0.0, min([_LOOK_S, *(at - time.monotonic() for at in self._due.values())]))

    def _obey(self, number: int) -> None:
        if number == signal.SIGHUP:
            self._reload()
        elif self._status is None:
            write_event("supervisor.stopping", signal=signal.Signals(number).name)
            self._status = 0
        else:
            for child in self._children.values():
                if child.program.stage:
                    child.kill_at = time.monotonic()

    # Starting

    def _look_who_is_ready(self) -> None:
        for child in self._children.values():
            if not child.is_ready and child.program.ready(child.pid):
                child.is_ready = True
                self._prove(child.program.name)

    def _prove(self, name: str) -> None:
        if name in self._proven:
            return
        self._proven.add(name)
        if self._proven == self._programs.keys():
            self._when_ready()

    def _start_due(self) -> None:
        for name, at in list(self._due.items()):
            program = self._programs[name]
            if at <= time.monotonic() and self._may_start(program):
                del self._due[name]
                self._start(program)

    def _may_start(self, program: Program) -> bool:
        """Whether everything is ready that it starts after."""
        ready = {child.program.name for child in self._children.values() if child.is_ready}
        return ready.issuperset(program.after)

    def _start(self, program: Program, *, replaces: int = 0) -> bool:
        try:
            program.prepare()
            process = program.spawn()
        except (OSError, subprocess.SubprocessError, ServerRefused) as exc:
            write_event("process.failed", level="error", name=program.name, reason=str(exc))
            if not replaces:
                self._start_again(program, 0.0, status=1)
            return False
        child = Child(program, process, time.monotonic(), replaces)
        self._children[child.pid] = child
        write_event("process.started", name=program.name, pid=child.pid)
        return True

    def _start_again(self, program: Program, ran_s: float, *, status: int) -> None:
        if status == UNUSABLE or (program.is_required and program.name not in self._proven):
            self._status = status or 1
            return
        failures = failures_after(self._failures.get(program.name, 0), ran_s)
        self._failures[program.name] = failures
        self._due[program.name] = time.monotonic() + restart_pause_s(failures)

    # Ending

    def _bury(self) -> None:
        """Takes leave of the dead, strangers included: as a container's first process it has to."""
        while True:
            try:
                pid, wait_status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if child := self._children.pop(pid, None):
                child.process.returncode = os.waitstatus_to_exitcode(wait_status)
                self._note_end(child, child.process.returncode)

    def _note_end(self, child: Child, status: int) -> None:
        self._board.forget(child.pid)
        ran_s = time.monotonic() - child.started
        level = "info" if child.leaving else "error"
        about = {"name": child.program.name, "pid": child.pid, "ran_s": round(ran_s, 1)}
        write_event("process.ended", level=level, status=status, **about)
        if child.leaving or self._status is not None:
            return
        if child.replaces in self._children:
            write_event("reload.failed", level="error", name=child.program.name, status=status)
            self._to_replace.clear()
        elif not any(other.replaces == child.pid for other in self._children.values()):
            self._start_again(child.program, ran_s, status=status)
        self._alarm_others_of(child.program)

    def _alarm_others_of(self, fallen_program: Program) -> None:
        """Those that do the same work, and know what the signal means because they are ready."""
        for child in self._children.values():
            does_the_same = child.program.stage == fallen_program.stage
            if does_the_same and child.program.alarm and child.is_ready and not child.leaving:
                child.signal(child.program.alarm)

    def _stop_next(self) -> None:
        """The highest stage that still runs is told to end; the next one when it is gone."""
        highest = max((child.program.stage for child in self._children.values()), default=0)
        for child in self._children.values():
            if child.program.stage == highest:
                child.leave(time.monotonic())

    def _kill_overdue(self) -> None:
        for child in self._children.values():
            if child.kill_at is not None and child.kill_at <= time.monotonic():
                write_event("process.killed", level="error", name=child.program.name, pid=child.pid)
                child.signal(signal.SIGKILL)
                child.kill_at = time.monotonic() + child.program.grace_s

    # Loading anew

    def _reload(self) -> None:
        if self._status is not None or self._to_replace:
            return
        try:
            self._before_reload()
        except Exception as exc:  # noqa: BLE001 - whatever it is, what runs goes on
            write_event("reload.refused", level="error", reason=str(exc))
            return
        write_event("reload.started")
        for child in sorted(self._children.values(), key=lambda child: child.program.stage):
            if child.program.reload:
                child.signal(child.program.reload)
            elif child.program.stage:
                self._to_replace.append(child.pid)

    def _replace_next(self) -> None:
        """One after the other: the new process starts, and when it works the old one may go, if it
        has not ended by itself."""
        if not self._to_replace:
            return
        pid = self._to_replace[0]
        old = self._children.get(pid)
        new = next((one for one in self._children.values() if one.replaces == pid), None)
        if new and not new.is_ready:
            return
        if old is None or old.leaving:
            self._to_replace.popleft()
        elif new:
            old.leave(time.monotonic())
        elif self._may_start(old.program) and not self._start(old.program, replaces=pid):
            self._to_replace.clear()


def _drain(descriptor: int) -> None:
    try:
        while os.read(descriptor, 4096):
            pass
    except BlockingIOError:
        return


class LocalWorkers:
    """Runs the workers under a supervisor of their own, for as long as this process lives."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bot.process.supervisor", "--beside"],
            env={**os.environ, plan.SUPERVISOR_VARIABLE: str(os.getpid())},
            start_new_session=True,
        )

    def stop(self) -> None:
        """Lets running turns finish, or hands them back; returns within twelve seconds."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


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
        from bot.text.languages import terminal_language  # what goes on running stays small

        chinese = terminal_language(os.environ) == "zh"
        sys.stderr.write(f"{exc.zh}。\n" if chinese else f"{exc}.\n")
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
        time.sleep(_RETRY_S)
    raise ServerRefused(
        f"the database in {server.folder} is used by another program (a script, or a worker "
        "started by hand): end that first",
        f"{server.folder} 中的数据库正被另一个程序（脚本，或手动启动的工作进程）使用：请先结束它",
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
                    f"another bot runs in {data_dir}: stop it first, or set another DATA_DIR",
                    f"{data_dir} 中已有另一个机器人在运行：请先停止它，或换一个 DATA_DIR",
                ) from None
            time.sleep(_RETRY_S)
        else:
            return


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
