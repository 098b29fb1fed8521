"""scripts/bench --machines: three machines over one Postgres, one of which is lost.

Each machine is a network namespace with web process, worker and DATA_DIR of its own. It has one
link to the database and one to Feishu, the model and the people. Needs root, for `ip netns`.

Examples:
  scripts/bench --machines                       ten rounds of each, in about ten minutes
  scripts/bench --machines --only database-cut --rounds 3

killed: kill -9 to everything on the machine. cut: both links are down. database-cut: the machine
still reaches Feishu and the model, but not the database. Each with nine questions in hand; `taken
over` is the time until the last has its answer, without the second that the model takes.
lost, doubled, mismatched: as for --faults. The exit status is 1 when anything was.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median

from rich.console import Console

from lab.doubles.processes import eventually
from lab.faults.command import table
from lab.faults.counting import Count, CountedQuestion
from lab.machines.hosts import Hosts, Machine, hosts_in

EXPERIMENTS = ("killed", "cut", "database-cut")
_MODEL_S = 1.0
_QUESTIONS = 9


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
    with (
        tempfile.TemporaryDirectory(prefix="machines-", ignore_cleanup_errors=True) as name,
        hosts_in(Path(name)) as hosts,
    ):
        counts = [lose(hosts, how, options.rounds) for how in options.only or EXPERIMENTS]
    for count in counts:
        for detail in count.details:
            Console(stderr=True).log(f"{count.experiment}: {detail}", markup=False)
    Console(width=None if sys.stdout.isatty() else 160).print(table(counts))
    return 0 if all(count.is_clean for count in counts) else 1


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
    sys.exit(main())
