"""scripts/bench --machines: three machines over one Postgres; one of them is lost, or the Postgres.

Each machine is a network namespace with web process, worker and DATA_DIR of its own. It has one
link to the database and one to Feishu, the model and the people. Needs root, for `ip netns`.

Examples:
  scripts/bench --machines                       ten rounds of each, in about half an hour
  scripts/bench --machines --only database-cut --rounds 3

killed: kill -9 to everything on the machine. cut: both links are down. database-cut: the machine
still reaches Feishu and the model, but not the database. Each with nine questions in hand; `taken
over` is the time until the last has its answer, without the second that the model takes.

failover: kill -9 to a primary that waits for its replica with every commit, while ten questions a
second come in; the replica is promoted a second later and takes over the address. unconfirmed: it
does not wait. behind: nor does it, and the replica has everything 0.2 s later. `answers again`:
until somebody who asked after that has an answer, `all answered`: until everybody has.
wrong-clock: a machine's clock is 30 s ahead (libfaketime of Debian's package faketime), and nine
questions are asked meanwhile.

lost, doubled, mismatched: as for --faults. The exit status is 1 when anything was.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import cast

from rich.console import Console

from lab.doubles.processes import eventually
from lab.faults.command import table
from lab.faults.counting import Count, CountedQuestion
from lab.machines.databases import ReplicatedPostgres, one_postgres, replicated_postgres
from lab.machines.hosts import Hosts, Machine, MakesDatabase, hosts_in
from scripts.operating.arguments import run_script

LOSSES = ("killed", "cut", "database-cut")
_FAILOVERS: dict[str, MakesDatabase] = {
    "failover": partial(replicated_postgres, confirms=True),
    "failover-unconfirmed": partial(replicated_postgres, confirms=False),
    "failover-behind": partial(replicated_postgres, confirms=False, behind_s=0.2),
}
EXPERIMENTS = (*LOSSES, "wrong-clock", *_FAILOVERS)
_MODEL_S = 1.0
_QUESTIONS = 9
_ASKED_PER_S = 10.0
_NOTICED_S = 1.0  # whoever watches the primary promotes the replica so long after it is gone
_AHEAD_S = 30
_FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="bench --machines",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--machines", action="store_true", help=argparse.SUPPRESS)
    made.add_argument("--only", action="append", choices=EXPERIMENTS, help="repeatable")
    made.add_argument("--rounds", type=int, default=10, metavar="N", help="of each (10)")
    return made


def main(arguments: list[str] | None = None) -> int:
    """Runs the experiments and prints the table; 1 when one is not clean."""
    options = parser().parse_args(arguments)
    wanted = options.only or EXPERIMENTS
    counts: list[Count] = []
    if here := [how for how in wanted if how not in _FAILOVERS]:
        with _hosts() as hosts:
            counts += [_RUNS.get(how, lose)(hosts, how, options.rounds) for how in here]
    for how in (how for how in wanted if how in _FAILOVERS):
        with _hosts(_FAILOVERS[how]) as hosts:
            counts.append(fail_over(hosts, how, options.rounds))
    for count in counts:
        for detail in count.details:
            Console(stderr=True).log(f"{count.experiment}: {detail}", markup=False)
    Console(width=None if sys.stdout.isatty() else 160).print(table(counts))
    return 0 if all(count.is_clean for count in counts) else 1


@contextmanager
def _hosts(database: MakesDatabase = one_postgres) -> Iterator[Hosts]:
    with (
        tempfile.TemporaryDirectory(prefix="machines-", ignore_cleanup_errors=True) as name,
        hosts_in(Path(name), database) as hosts,
    ):
        yield hosts


def lose(hosts: Hosts, how: str, rounds: int) -> Count:
    """One machine after the other is lost with questions in hand, and comes back."""
    scene = hosts.scene
    count = Count(how, scene.bot_id)
    scene.model.control("mode", {"mode": "echo", "delay_s": _MODEL_S})
    asked: list[CountedQuestion] = []
    waited: list[float] = []
    for number in range(rounds):
        machine = hosts.machines[number % len(hosts.machines)]
        eventually(hosts.are_complete, within_s=120, what="all machines work")
        time.sleep(1.5)
        questions = [scene.ask(f"{how} {number}", scene.new_chat()) for _ in range(_QUESTIONS)]
        eventually(partial(scene.are_in_hand, questions), what="all are in hand")
        _lose(machine, how)
        lost_ms = time.time() * 1000
        meanwhile = scene.count(Count(how, scene.bot_id), questions)
        last_ms = max(meanwhile.answered_ms, default=lost_ms)
        waited.append(max(0.0, (last_ms - lost_ms) / 1000 - _MODEL_S))
        _bring_back(machine, how)
        asked += questions
        count.rounds += 1
    count.notes.append(f"taken over: p50 {median(waited):.1f} s, max {max(waited):.1f} s")
    eventually(hosts.are_complete, within_s=120, what="all machines work")
    time.sleep(3.0)  # what came back late would be sent by now
    return scene.count(count, asked)


def fail_over(hosts: Hosts, how: str, rounds: int) -> Count:
    """The primary dies while people ask, and its replica takes over; the other one follows it."""
    scene, database = hosts.scene, cast(ReplicatedPostgres, hosts.database)
    count = Count(how, scene.bot_id)
    scene.model.control("mode", {"mode": "echo", "delay_s": _MODEL_S})
    asked: list[CountedQuestion] = []
    again: list[float] = []
    last: list[float] = []
    for number in range(rounds):
        eventually(hosts.are_complete, within_s=120, what="all machines work")
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
        last.append(_seconds_since(lost_ms, max(meanwhile.answered_ms, default=0)))
        database.follow()
        asked += questions
        count.rounds += 1
    count.notes.append(f"answers again: p50 {median(again):.1f} s, max {max(again):.1f} s")
    count.notes.append(f"all answered: p50 {median(last):.1f} s, max {max(last):.1f} s")
    eventually(hosts.are_complete, within_s=120, what="all machines work")
    return scene.count(count, asked)


def _seconds_since(lost_ms: float, answered_ms: float) -> float:
    return max(0.0, (answered_ms - lost_ms) / 1000 - _MODEL_S)


def run_ahead(hosts: Hosts, how: str, rounds: int) -> Count:
    """One machine after the other has a clock that is ahead, which its log has to name."""
    scene = hosts.scene
    count = Count(how, scene.bot_id)
    scene.model.control("mode", {"mode": "echo", "delay_s": _MODEL_S})
    asked: list[CountedQuestion] = []
    named = 0
    for number in range(rounds):
        machine = hosts.machines[number % len(hosts.machines)]
        log = machine.folder / "bot.log"
        machine.kill()
        said = log.stat().st_size
        machine.environment |= {
            "LD_PRELOAD": _FAKETIME,
            "FAKETIME": f"+{_AHEAD_S}s",
        }
        machine.start()
        eventually(hosts.are_complete, within_s=120, what="all machines work")
        asked += [scene.ask(f"{how} {number}", scene.new_chat()) for _ in range(_QUESTIONS)]
        scene.count(Count(how, scene.bot_id), asked[-_QUESTIONS:])
        with log.open("rb") as words:
            words.seek(said)
            named += b"clock.differs" in words.read()
        machine.kill()
        machine.environment.clear()
        machine.start()
        count.rounds += 1
    count.notes.append(f"named in the log in {named} of {rounds}")
    eventually(hosts.are_complete, within_s=120, what="all machines work")
    return scene.count(count, asked)


_RUNS = {"wrong-clock": run_ahead}


def _lose(machine: Machine, how: str) -> None:
    if how == "killed":
        machine.kill()
    else:
        machine.network.cut(*(("database",) if how == "database-cut" else ("database", "outside")))


def _bring_back(machine: Machine, how: str) -> None:
    if how == "killed":
        machine.start()
    else:
        machine.network.mend()


if __name__ == "__main__":
    run_script(main)
