"""Chaos: what the bot survives. Each fault is real; people ask meanwhile.

Real processes: the one command with two workers, a Postgres of its own, the strict stand-in for
Feishu, the stand-in model, Supabase Lite. Counted from both sides: what people see, what is stored.

Examples:
  scripts/chaos                          kills, networks and databases, in about 40 minutes
  scripts/chaos --short                  a round of each, in about four minutes
  scripts/chaos --only kills --rounds 40
  scripts/chaos --only feishu --minutes 15

kills: kill -9 to a worker, the web processes, everything. takeover: how long until the others
answer. feishu: out of reach, in four ways. crashes, hanging, refusing: Postgres. supabase: its API
fails in ten ways.

lost: acknowledged, but no card. doubled: more cards than are stored. other than stored: what people
see differs. The exit status is 1 when there was any.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from lab.chaos import databases, processes
from lab.chaos.counting import Count
from lab.chaos.scene import FaultScene, scene_in
from lab.doubles.processes import postmaster, stop_server
from lab.figures import Results, machine
from scripts.operating.arguments import run_script

_SHORT_MINUTES = 0.2


@dataclass(frozen=True, slots=True)
class Experiment:
    """`full` and `short` are its rounds."""

    run: Callable[[FaultScene, Count, int], None]
    full: int
    short: int


def experiments(minutes: float) -> dict[str, Experiment]:
    """Lists the experiments. Feishu is away for so many minutes."""
    away = partial(processes.feishu_away, minutes=minutes)
    return {
        "kills": Experiment(processes.kills, 42, 3),
        "takeover": Experiment(processes.takeover, 20, 2),
        "feishu": Experiment(away, 1, 1),
        "crashes": Experiment(databases.crashes, 3, 1),
        "hanging": Experiment(databases.hanging, 3, 1),
        "refusing": Experiment(databases.refusing, 10, 2),
        "supabase": Experiment(databases.supabase, 100, 2),
    }


NAMES = tuple(experiments(1))


def parser() -> argparse.ArgumentParser:
    """Builds the command line."""
    made = argparse.ArgumentParser(
        prog="chaos", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = made.add_argument
    add("--short", action="store_true", help="a round of each")
    add("--only", action="append", choices=NAMES, metavar="NAME", help="repeatable")
    add("--rounds", type=int, metavar="N", help="of each experiment")
    add("--minutes", type=float, help="Feishu is away for so long (15)")
    add("--json", action="store_true", help="print JSON instead of the table")
    return made


def main(arguments: list[str] | None = None) -> int:
    """Runs the experiments and prints the table; 1 if one is not clean."""
    options = parser().parse_args(arguments)
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="chaos-", ignore_cleanup_errors=True) as name:
        counts = _counts(options, Path(name), console)
    for count in counts:
        for detail in count.details:
            console.log(f"{count.experiment}: {detail}", markup=False)
    figures = [figure for count in counts for figure in count.figures()]
    status = Results(figures, conditions=machine()).show(as_json=options.json)
    return status or int(not all(count.is_clean for count in counts))


def _counts(options: argparse.Namespace, folder: Path, console: Console) -> list[Count]:
    known = experiments(options.minutes or (_SHORT_MINUTES if options.short else 15.0))
    counts = []
    try:
        with scene_in(folder) as scene:
            for name in options.only or NAMES:
                console.log(f"experiment {name}")
                rounds = known[name].short if options.short else known[name].full
                counts.append(_run(scene, name, known[name], options.rounds or rounds))
    finally:
        stop_server(postmaster(folder))
    return counts


def _run(scene: FaultScene, name: str, one: Experiment, rounds: int) -> Count:
    count = Count(name, scene.bot_id)
    try:
        one.run(scene, count, rounds)
    except AssertionError as exc:  # an awaited event did not come: no result is not a clean one
        count.lost += 1
        count.details.append(str(exc).splitlines()[0])
    finally:
        processes.rest(scene)
    return count


if __name__ == "__main__":
    run_script(main)
