"""The Postgres that the machines share: one, or one with a streaming replica that takes over."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import psycopg

from lab.chaos.namespaces import Namespace
from lab.doubles.processes import Process, eventually, free_port, start
from memory import migrations
from memory.backends.embedded import Server
from memory.backends.embedded_host import installed_program, server_account

RELAY = (sys.executable, "-m", "lab.chaos.relay")
_RULES = """
host all all 10.201.0.0/16 trust
host all all 127.0.0.0/8 trust
host replication all 127.0.0.0/8 trust
"""


@dataclass
class Database:
    """`url` for this process; each machine reaches it at `port` of its own link."""

    url: str
    port: int


@contextmanager
def one_postgres(folder: Path, networks: list[Namespace]) -> Iterator[Database]:
    """A server that the machines reach directly."""
    member, port = ClusterMember(folder), free_port()
    member.start(",".join(one.database_host for one in networks), port)
    url = f"{member.server.url}&port={port}"
    try:
        eventually(lambda: takes(url), within_s=30, what=f"Postgres answers; see {folder}")
        migrations.apply_migrations(url)
        yield Database(url, port)
    finally:
        member.stop()


@dataclass
class ClusterMember:
    """One server with a folder of its own."""

    folder: Path
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def server(self) -> Server:
        return Server(self.folder)

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self, addresses: str, port: int) -> None:
        """Makes the database when there is none."""
        self.port = port
        self.folder.mkdir(exist_ok=True)
        launch = self.server.prepare()
        own = [f"listen_addresses={addresses}" if a == "listen_addresses=" else a
               for a in launch.arguments]  # fmt: skip
        with (self.server.folder / "pg_hba.conf").open("a") as rules:
            rules.write(_RULES)
        self.process = launch._replace(arguments=(*own, "-p", str(port))).spawn()

    def copy_of(self, source: int) -> None:
        """Replaces what it has by a copy of the server at port `source`, which it will follow."""
        self.folder.mkdir(exist_ok=True)
        shutil.rmtree(self.server.folder, ignore_errors=True)
        program = installed_program() / "bin" / "pg_basebackup"
        origin = f"host=127.0.0.1 port={source} user=postgres"
        subprocess.run(
            [program, "-D", self.server.folder, "-d", origin, "-X", "stream", "-c", "fast", "-R"],
            check=True,
            capture_output=True,
        )
        user = server_account()
        if user.separate:
            subprocess.run(["chown", "-R", user.name, self.server.folder], check=True)

    def kill(self) -> None:
        """As a power cut: the server and every backend, by SIGKILL."""
        if self.process:
            family = [self.process.pid]
            with contextlib.suppress(psutil.NoSuchProcess):
                family += [one.pid for one in psutil.Process(self.process.pid).children()]
            for pid in family:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.wait(60)
            self.process = None

    def stop(self) -> None:
        if self.process:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(60)


@dataclass
class ReplicatedPostgres(Database):
    """A primary, its replica that confirms every commit, and an address of the primary."""

    folder: Path
    hosts: list[str]
    members: list[ClusterMember] = field(default_factory=list)
    relays: list[Process] = field(default_factory=list)

    @property
    def primary(self) -> ClusterMember:
        return self.members[0]

    def begin(self) -> None:
        self.members = [ClusterMember(self.folder / name) for name in ("first", "second")]
        self.primary.start("127.0.0.1", free_port())
        eventually(lambda: takes(self.primary.url), within_s=30, what="the primary answers")
        migrations.apply_migrations(self.primary.url)
        self._lead()
        self.follow()

    def follow(self) -> None:
        """The other one becomes a copy of the primary, follows it, and confirms its commits."""
        replica = self.members[1]
        replica.copy_of(self.primary.port)
        replica.start("127.0.0.1", free_port())
        eventually(lambda: self._streams("streaming"), what="the replica streams")
        self._execute("alter system set synchronous_standby_names = '*'")
        self._execute("select pg_reload_conf()")
        eventually(lambda: self._streams("sync"), what="commits wait for the replica")

    def lose_primary(self) -> None:
        """Its machine loses power: what is on its way to anybody is gone."""
        for relay in self.relays:
            relay.kill()
        self.relays.clear()
        self.primary.kill()

    def promote(self) -> None:
        """The replica becomes the primary, at the same address; returns when it takes writes."""
        self.members.reverse()
        self._execute("select pg_promote()")
        self._execute("alter system reset synchronous_standby_names")
        self._execute("select pg_reload_conf()")
        self._lead()

    def close(self) -> None:
        for relay in self.relays:
            relay.kill()
        for member in self.members:
            member.stop()

    def _lead(self) -> None:
        """The primary sees each machine at an address of its own."""
        target = f"127.0.0.1:{self.primary.port}"
        pairs = (
            f"{host}:{self.port}={target}@127.0.1.{number}"
            for number, host in enumerate(self.hosts, 1)
        )
        self.relays.append(start("address", [*RELAY, *pairs], self.folder))
        eventually(lambda: takes(self.url), what="the address leads to the primary")

    def _streams(self, state: str) -> bool:
        with psycopg.connect(self.primary.url, autocommit=True) as database:
            query = "select from pg_stat_replication where %s in (state, sync_state)"
            return database.execute(query, [state]).fetchone() is not None

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self.primary.url, autocommit=True) as database:
            database.execute(statement.encode())


@contextmanager
def replicated_postgres(folder: Path, networks: list[Namespace]) -> Iterator[ReplicatedPostgres]:
    """Runs both, one following the other."""
    folder.mkdir()
    port, hosts = free_port(), [one.database_host for one in networks]
    url = f"postgresql://postgres@{hosts[0]}:{port}/postgres"
    made = ReplicatedPostgres(url, port, folder, hosts)
    try:
        made.begin()
        yield made
    finally:
        made.close()


def takes(url: str) -> bool:
    """Whether it takes connections."""
    with contextlib.suppress(psycopg.Error):
        psycopg.connect(url, connect_timeout=5).close()
        return True
    return False
