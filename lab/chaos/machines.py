"""Experiments: one of three machines over one Postgres is lost, or that Postgres fails over.

Each machine is a network namespace with web process, worker and DATA_DIR of its own. One link leads
to the database, one to Feishu, the model and the people.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import cast

from lab.chaos.counting import Count, CountedQuestion
from lab.chaos.door import door_to
from lab.chaos.namespaces import Namespace, namespaces
from lab.chaos.replication import (
    RELAY,
    Database,
    ReplicatedPostgres,
    one_postgres,
    replicated_postgres,
)
from lab.chaos.scene import FaultScene
from lab.doubles.processes import (
    APP,
    ROOT,
    Process,
    clean_environment,
    eventually,
    free_port,
    running_model,
    running_platform,
    start,
)

MACHINES = 3
LOSSES = ("machine-killed", "machine-cut", "machine-without-database")
_MODEL_S = 1.0
_QUESTIONS = 9
_ASKED_PER_S = 10.0
_NOTICED_S = 1.0  # a watchdog promotes the replica this long after the primary is gone
MakesDatabase = Callable[[Path, list[Namespace]], AbstractContextManager[Database]]


@dataclass
class Machine:
    """A namespace, and the one command in it. `database_url` is what links it to the others."""

    network: Namespace
    folder: Path
    port: int
    model_and_feishu: tuple[int, int]
    database_url: str
    relay: Process | None = None
    command: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Boots it: the command and what relays to Feishu and the model."""
        python = self.network.command(sys.executable)
        self.folder.mkdir(exist_ok=True)
        outside = self.network.outside_host
        relays = [f"127.0.0.1:{port}={outside}:{port}" for port in self.model_and_feishu]
        self.relay = start("relay", [*python, *RELAY[1:], *relays], self.folder)
        with (self.folder / "bot.log").open("ab") as log:
            self.command = subprocess.Popen(
                [*python, "-m", "gunicorn", "-c", "gunicorn.conf.py", "app:create_app()"],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**clean_environment(), **self._variables()},
                start_new_session=True,
            )

    def kill(self) -> None:
        """As a power cut: every process of it, by SIGKILL."""
        if self.command:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.command.pid, signal.SIGKILL)
            self.command.wait(60)
        if self.relay:
            self.relay.kill()

    def _variables(self) -> dict[str, str]:
        model, feishu = self.model_and_feishu
        return {
            **APP,
            "PORT": str(self.port),
            "DATA_DIR": str(self.folder),
            "DATABASE_URL": self.database_url,
            "INLINE_WORKER": "1",
            "WORKERS": "1",
            "FEISHU_DOMAIN": f"http://127.0.0.1:{feishu}",
            "OPENAI_API_KEY": "machine-key",
            "OPENAI_BASE_URL": f"http://127.0.0.1:{model}/v1",
            "STREAM_REPLIES": "false",
            "REQUESTS_PER_MINUTE": "0",
        }


@dataclass
class Hosts:
    """The machines, and the people who ask whichever of them a balancer chooses."""

    machines: list[Machine]
    scene: FaultScene
    database: Database

    def workers(self) -> list[tuple[int, str]]:
        """Id and address of every worker's session, by its advisory lock."""
        query = """select l.objid::int8, host(a.client_addr) from pg_locks l
                   join pg_stat_activity a using (pid)
                   where l.locktype = 'advisory' and l.mode = 'ExclusiveLock' and l.granted
                     and l.classid = feishu_bot.worker_lock()::oid"""
        return self.scene.rows(query)

    def wait(self) -> None:
        """Returns once every machine works."""
        eventually(self.are_complete, within_s=120, what="all machines work")

    def are_complete(self) -> bool:
        """Returns whether every machine's worker is there, and no other."""
        return len(self.workers()) == len(self.machines) == len({w for _, w in self.workers()})


def _port(url: str) -> int:
    return int(url.rpartition(":")[2])


@contextmanager
def hosts_in(folder: Path, database_in: MakesDatabase = one_postgres) -> Iterator[Hosts]:
    """Runs all of it; yields once the machines are ready."""
    with ExitStack() as stack:
        networks = stack.enter_context(namespaces(MACHINES))
        database = stack.enter_context(database_in(folder / "database", networks))
        web, balancer = free_port(), free_port()
        model = stack.enter_context(running_model(folder))
        hook = f"http://127.0.0.1:{balancer}/webhook/event"
        options = ("--retry-scale", "0.005", "--no-rate-limits")
        platform = stack.enter_context(running_platform(folder, hook, *options))
        ports = _port(model.url), _port(platform.url)
        door = stack.enter_context(door_to(ports[1]))
        webs = ",".join(f"{one.own_host}:{web}" for one in networks)
        relays = [f"{one.outside_host}:{p}=127.0.0.1:{p}" for one in networks for p in ports]
        command = [*RELAY, f"127.0.0.1:{balancer}={webs}", *relays]
        relay = start("balancer", command, folder)
        stack.callback(relay.kill)
        machines = [
            Machine(one, folder / f"machine{one.number}", web, ports,
                    f"postgresql://postgres@{one.database_host}:{database.port}/postgres")
            for one in networks
        ]  # fmt: skip
        for machine in machines:
            stack.callback(machine.kill)
            machine.start()
        scene = FaultScene(folder, web, platform, model, door, database.url)
        hosts = Hosts(machines, scene, database)
        hosts.wait()
        yield hosts


def lose(folder: Path, how: str, rounds: int) -> Count:
    """One machine after the other is lost with questions in hand, and comes back."""
    with hosts_in(folder) as hosts:
        scene = hosts.scene
        count = Count(how, scene.bot_id)
        scene.model.control("mode", {"mode": "echo", "delay_s": _MODEL_S})
        asked: list[CountedQuestion] = []
        waited: list[float] = []
        for number in range(rounds):
            machine = hosts.machines[number % len(hosts.machines)]
            hosts.wait()
            time.sleep(1.5)
            questions = [scene.ask(f"{how} {number}", scene.new_chat()) for _ in range(_QUESTIONS)]
            eventually(partial(scene.are_in_hand, questions), what="all are in hand")
            _lose(machine, how)
            lost_ms = time.time() * 1000
            meanwhile = scene.count(Count(how, scene.bot_id), questions)
            waited.append(_seconds_since(lost_ms, max(meanwhile.answered_ms, default=lost_ms)))
            _bring_back(machine, how)
            asked += questions
            count.rounds += 1
        count.notes.append(f"taken over: p50 {median(waited):.1f} s, max {max(waited):.1f} s")
        hosts.wait()
        time.sleep(3.0)  # answers that come back late would be sent by now
        return scene.count(count, asked)


def fail_over(folder: Path, how: str, rounds: int) -> Count:
    """The primary dies while people ask, and its replica takes over; the other one follows it."""
    with hosts_in(folder, replicated_postgres) as hosts:
        scene, database = hosts.scene, cast(ReplicatedPostgres, hosts.database)
        count = Count(how, scene.bot_id)
        scene.model.control("mode", {"mode": "echo", "delay_s": _MODEL_S})
        asked: list[CountedQuestion] = []
        again: list[float] = []
        for number in range(rounds):
            hosts.wait()
            questions: list[CountedQuestion] = []
            with scene.asking(questions, per_s=_ASKED_PER_S, text=f"{how} {number}"):
                time.sleep(2.0 + number % 10 / 10)
                database.lose_primary()
                lost_ms = time.time() * 1000
                time.sleep(_NOTICED_S)
                before = len(questions)
                database.promote()
                time.sleep(4.0)
            meanwhile = scene.count(Count(how, scene.bot_id), questions[before:])
            again.append(_seconds_since(lost_ms, min(meanwhile.answered_ms, default=0)))
            database.follow()
            asked += questions
            count.rounds += 1
        count.notes.append(f"answers again: p50 {median(again):.1f} s, max {max(again):.1f} s")
        hosts.wait()
        return scene.count(count, asked)


def _seconds_since(lost_ms: float, answered_ms: float) -> float:
    """Returns the time until an answer, less that of the model."""
    return max(0.0, (answered_ms - lost_ms) / 1000 - _MODEL_S)


def _lose(machine: Machine, how: str) -> None:
    match how:
        case "machine-killed":
            machine.kill()
        case "machine-cut":
            machine.network.cut("database", "outside")
        case _:
            machine.network.cut("database")


def _bring_back(machine: Machine, how: str) -> None:
    if how == "machine-killed":
        machine.start()
    else:
        machine.network.mend()
