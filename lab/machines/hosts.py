"""Three machines with web process and worker each, one Postgres between them, and people."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from lab.benchmark.checkouts import ROOT
from lab.doubles.processes import (
    APP,
    Process,
    clean_environment,
    eventually,
    free_port,
    running_model,
    running_platform,
    start,
)
from lab.faults.door import door_to
from lab.faults.scene import FaultScene
from lab.machines.databases import Database, one_postgres
from lab.machines.namespaces import Namespace, namespaces

MACHINES = 3
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
    environment: dict[str, str] = field(default_factory=dict)

    def start(self) -> None:
        """Boots it: the command and what relays to Feishu and the model."""
        python = self.network.command(sys.executable)
        self.folder.mkdir(exist_ok=True)
        outside = self.network.outside_host
        relays = [f"127.0.0.1:{port}={outside}:{port}" for port in self.model_and_feishu]
        self.relay = start("relay", [*python, "-m", "lab.machines.relay", *relays], self.folder)
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
            **self.environment,
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

    def are_complete(self) -> bool:
        """Whether every machine's worker is there, and no other."""
        return len(self.workers()) == len(self.machines) == len({w for _, w in self.workers()})


def _port(url: str) -> int:
    return int(url.rpartition(":")[2])


@contextmanager
def hosts_in(folder: Path, database_in: MakesDatabase = one_postgres) -> Iterator[Hosts]:
    """All of it, running; the machines are ready."""
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
        command = [sys.executable, "-m", "lab.machines.relay", f"127.0.0.1:{balancer}={webs}"]
        relay = start("balancer", [*command, *relays], folder)
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
        eventually(hosts.are_complete, within_s=120, what=f"three machines work; see {folder}")
        yield hosts
