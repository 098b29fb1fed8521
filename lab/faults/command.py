"""scripts/bench --faults: what of the bot survives what, each fault injected for real.

Real processes: the one command with two workers, a Postgres of its own, the strict stand-in for
Feishu, the stand-in model, Supabase Lite. People ask while processes are killed, Postgres is
stopped at once, Feishu is out of reach, events hold nonsense, Supabase, the log, the model and the
platform fail in every way that is known, tools are hostile, one person floods the bot, and messages
are taken back at the worst moment. Counted from both sides: what people see, what is stored.

Examples:
  scripts/bench --faults                          everything, in about an hour
  scripts/bench --faults --short                  a round of each, in about eight minutes
  scripts/bench --faults --only kills --rounds 40
  scripts/bench --faults --only feishu --minutes 15

pushed: acknowledged by the bot; silences count from there. lost: no card. ended: no card, for a
reason that Feishu gave (the bot is not in the chat …) or because the event was nonsense. doubled:
more cards than are stored. mismatched: what is stored is not what people see. shown: what was taken
back or forgotten and is still stored or seen. The exit status is 1 when anything was.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from lab.benchmark.processes import postmaster, stop_server
from lab.faults import crashes, kinds, outsiders, processes_and_networks, supabase, taken_back
from lab.faults.counting import Count
from lab.faults.scene import FaultScene, scene_in
from scripts.operating.arguments import run_script

_PAGE_WIDTH = 160
_SHORT_MINUTES = 0.2


@dataclass(frozen=True, slots=True)
class Experiment:
    """`full` and `short` are rounds, 0 for none; of experiments with kinds a round is a kind, of
    those with many people a person."""

    run: Callable[[FaultScene, Count, int], None]
    full: int
    short: int


def in_short() -> list[str]:
    """The experiments of which a short round is made."""
    return [name for name, one in experiments(_SHORT_MINUTES).items() if one.short]


def experiments(minutes: float) -> dict[str, Experiment]:
    """By name, in the order of the table."""
    away = partial(processes_and_networks.feishu_away, minutes=minutes)
    return {
        "kills": Experiment(processes_and_networks.kills, 42, 3),
        "takeover": Experiment(processes_and_networks.takeover, 20, 2),
        "postgres": Experiment(processes_and_networks.postgres, 12, 1),
        "crashes": Experiment(crashes.crashes, 3, 0),
        "hanging": Experiment(crashes.hanging, 3, 0),
        "refusing": Experiment(crashes.refusing, 10, 0),
        "feishu": Experiment(away, 1, 1),
        "logs": Experiment(processes_and_networks.logs, 3, 3),
        "poison": Experiment(kinds.poison, 100, 8),
        "model": Experiment(kinds.model, 100, 100),
        "hung": Experiment(kinds.hung, 150, 0),
        "platform": Experiment(kinds.platform, 200, 16),
        "supabase": Experiment(supabase.supabase, 100, 2),
        "taken-back": Experiment(taken_back.memory_away, 100, 1),
        "grounds": Experiment(taken_back.grounds, 36, 2),
        "forgetting": Experiment(taken_back.forgetting, 24, 3),
        "topics": Experiment(outsiders.topics, 12, 2),
        "mcp": Experiment(outsiders.mcp, 100, 4),
        "flooding": Experiment(outsiders.flooding, 6, 1),
    }


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="bench --faults",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--faults", action="store_true", help=argparse.SUPPRESS)
    made.add_argument("--short", action="store_true", help="a round of each")
    made.add_argument("--only", action="append", choices=list(experiments(1)), help="repeatable")
    made.add_argument("--rounds", type=int, metavar="N", help="of each experiment")
    made.add_argument("--minutes", type=float, help="Feishu is away for so long (15)")
    made.add_argument("--json", action="store_true", help="print JSON instead of the table")
    return made


def main(arguments: list[str] | None = None) -> int:
    """Runs the experiments and prints the table; 1 when one is not clean."""
    options = parser().parse_args(arguments)
    minutes = options.minutes or (_SHORT_MINUTES if options.short else 15.0)
    console = Console(stderr=True)
    counts: list[Count] = []
    with tempfile.TemporaryDirectory(prefix="faults-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        try:
            with scene_in(folder, kinds.SPOILS) as scene:
                for wanted, one in experiments(minutes).items():
                    if options.only and wanted not in options.only:
                        continue
                    rounds = options.rounds or (one.short if options.short else one.full)
                    if not rounds:
                        continue
                    console.log(f"experiment {wanted}")
                    counts.append(_run(scene, wanted, one, rounds, console))
        finally:
            stop_server(postmaster(folder))
    if options.json:
        print(json.dumps([_as_json(count) for count in counts], ensure_ascii=False, indent=2))
    else:
        width = None if sys.stdout.isatty() else _PAGE_WIDTH
        Console(width=width).print(table(counts))
    return 0 if all(count.is_clean for count in counts) else 1


def _run(scene: FaultScene, name: str, one: Experiment, rounds: int, console: Console) -> Count:
    count = Count(name, scene.bot_id)
    try:
        one.run(scene, count, rounds)
    except AssertionError as exc:  # what was waited for did not come: no result is no clean one
        count.lost += 1
        count.details.append(str(exc).splitlines()[0])
    finally:
        processes_and_networks.rest(scene)
    for detail in count.details:
        console.log(f"{name}: {detail}", markup=False)
    return count


def table(counts: list[Count]) -> Table:
    """One line for each experiment."""
    drawn = Table(box=box.SIMPLE_HEAD)
    columns = ("experiment", "rounds", "pushed", "lost", "ended", "doubled", "mismatched", "shown")
    for column in (*columns, "longest silence", "note"):
        drawn.add_column(column)
    for one in counts:
        numbers = (
            one.rounds,
            one.pushed,
            one.lost,
            one.ended,
            one.doubled,
            one.mismatched,
            one.shown,
        )
        drawn.add_row(
            one.experiment, *map(str, numbers), f"{one.longest_s:.1f} s", "; ".join(one.notes)
        )
    return drawn


def _as_json(count: Count) -> dict[str, object]:
    silences = {"longest_s": count.longest_s}
    return {
        k: v for k, v in asdict(count).items() if k not in ("silences_s", "answered_ms")
    } | silences


if __name__ == "__main__":
    run_script(main)
