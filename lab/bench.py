"""Measures the bot as it runs, on this machine, against the bars it has to meet.

Real processes, started by the one command, embedded Postgres with normal durability, signed and
encrypted events, a stand-in model that takes 300 ms. Feishu is answered by the load generator
itself, which costs little; neither it nor the model counts as CPU of the bot.

Examples:
  scripts/bench --talk --help            what a mention and a message cost, beside another version
  scripts/bench                          memory and flood, in about three minutes and 2 GB of /tmp
  scripts/bench --quick                  a first impression in about a minute
  scripts/bench --only memory --json >numbers.json
  scripts/bench --faults --help          what it survives: kills, outages, nonsense
  scripts/bench --machines --help        what is left when one of three machines is lost
  scripts/bench --soak 30                what grows in half an hour, and a burst
  scripts/bench --models --help          real models in place of the stand-ins

MEASURES = ("memory", "flood")
_ON_REQUEST = ("storage", "imports", "neighbours")

A missed bar is reported as MISS; the exit status is 1 only when something could not be measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from rich.console import Console

from lab.benchmark.checkouts import ROOT, Checkout, checkout_at
from lab.benchmark.figures import FailedMeasure, Figure
from lab.benchmark.flood import measure_flood
from lab.benchmark.history_imports import measure_imports
from lab.benchmark.load import MODEL_S
from lab.benchmark.machine import describe_machine
from lab.benchmark.memory_access import measure_memory
from lab.benchmark.neighbours import measure_neighbours
from lab.benchmark.processes import (
    EXPECTED,
    free_port,
    postmaster,
    running,
    stop_server,
    until_said,
)
from lab.benchmark.reports import report, table
from lab.benchmark.setting import Setting
from lab.doubles.minimal_feishu import StandIn
from lab.faults import command as faults
from lab.machines import command as machines
from lab.models import command as models
from lab.soak import command as soak
from lab.talk import command as talk
from lab.talk.storage import measure_storage
from scripts.operating.arguments import run_script

_LONGEST_S = 1800.0
_TURN_S = 0.2  # of a measured turn, on a busy machine
_PAGE_WIDTH = 180  # of a file or a pipe, in characters
MEASURES = ("memory", "flood")
_ON_REQUEST = ("storage", "imports", "neighbours")
_TURNS = 3_000
_IMPORTED = 100_000


@dataclass
class BenchResults:
    """What was measured, and what could not be."""

    figures: list[Figure] = field(default_factory=list)
    failed: list[FailedMeasure] = field(default_factory=list)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--quick", action="store_true", help="3 s per load, 100,000 messages")
    made.add_argument(
        "--only", action="append", choices=MEASURES + _ON_REQUEST, help="may be repeated"
    )
    made.add_argument("--seconds", type=_seconds, help="of each load (10; 1 to 120)")
    made.add_argument("--messages", type=_messages, help="in the large memory (1,000,000)")
    made.add_argument("--turns", type=_turns, default=_TURNS, help="of storage (3,000)")
    made.add_argument(
        "--imported", type=_messages, default=_IMPORTED, help="messages of imports (100,000)"
    )
    made.add_argument(
        "--workers", type=int, choices=range(1, 9), default=1, help="worker processes (1)"
    )
    made.add_argument("--json", action="store_true", help="print JSON instead of the table")
    return made


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; 1 when a measure could not be taken."""
    given = sys.argv[1:] if arguments is None else arguments
    signal.signal(signal.SIGTERM, _interrupted)
    if "--faults" in given:
        return faults.main(given)
    if "--machines" in given:
        return machines.main(given)
    if "--talk" in given:
        return talk.main(given)
    if "--models" in given:
        return models.main(given)
    if any(one.split("=")[0] == "--soak" for one in given):
        return soak.main(given)
    options = parser().parse_args(given)
    machine, this = describe_machine(), checkout_at(ROOT)
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        try:
            found = asyncio.run(_measure(options, this, folder, Console(stderr=True)))
        finally:
            for data_dir in filter(Path.is_dir, folder.iterdir()):
                stop_server(postmaster(data_dir))
    if options.json:
        _print_json(machine, found)
    else:
        _print(machine, found)
    return 1 if found.failed else 0


async def _measure(
    options: argparse.Namespace, this: Checkout, folder: Path, console: Console
) -> BenchResults:
    found = BenchResults()
    async with _setting(options, this, folder) as setting:
        for name in options.only or MEASURES:
            console.log(f"measuring {name}")
            try:
                async with asyncio.timeout(_LONGEST_S + _TURN_S * options.turns):
                    await _take(name, setting, options, this, found, console)
            except EXPECTED as exc:
                found.failed.append(FailedMeasure.by(name, exc))
        if unknown := setting.platform.unknown:
            found.failed.append(
                FailedMeasure("platform", f"asked for {', '.join(sorted(unknown))}")
            )
    return found


@asynccontextmanager
async def _setting(
    options: argparse.Namespace, this: Checkout, folder: Path
) -> AsyncIterator[Setting]:
    """The stand-ins for Feishu and the model run meanwhile."""
    stand_in, port = StandIn(), free_port()
    slow = ("sandbox.model.model", "--port", str(port), "--delay", str(MODEL_S))
    await stand_in.start()
    async with running("model", slow, folder, {}, this) as model:
        await until_said(model, "Chat Completions at")
        yield Setting(
            folder=folder,
            platform=stand_in,
            model_url=f"http://127.0.0.1:{port}/v1",
            model_pid=model.popen.pid,
            seconds=options.seconds or (3.0 if options.quick else 10.0),
            quick=options.quick,
            messages=options.messages or (100_000 if options.quick else 1_000_000),
            workers=options.workers,
        )
    await stand_in.stop()


async def _take(
    name: str,
    setting: Setting,
    options: argparse.Namespace,
    this: Checkout,
    found: BenchResults,
    console: Console,
) -> None:
    match name:
        case "flood":
            found.figures += await measure_flood(setting, this)
        case "storage":
            turns = options.turns // 10 if setting.quick else options.turns
            found.figures += await measure_storage(setting, this, turns, console.log)
        case "imports":
            found.figures += await measure_imports(setting, this, options.imported)
        case "neighbours":
            found.figures += await asyncio.to_thread(
                measure_neighbours, setting.folder, console.log
            )
        case "memory":
            found.figures += await measure_memory(setting, console.log)


def _print_json(machine: dict[str, object], found: BenchResults) -> None:
    made = report(machine, found.figures, found.failed)
    print(json.dumps(made, ensure_ascii=False, indent=2))


def _print(machine: dict[str, object], found: BenchResults) -> None:
    console = Console(width=None if sys.stdout.isatty() else _PAGE_WIDTH)
    console.print(", ".join(f"{name} {value}" for name, value in machine.items()))
    console.print("Feishu: the load generator itself; model: a stand-in that takes 300 ms")
    console.print(table(found.figures))
    for one in found.failed:
        console.print(f"not measured: {one.measure}: {one.reason}", markup=False)
    misses = [figure.title for figure in found.figures if figure.verdict == "miss"]
    console.print(f"missed: {'; '.join(misses)}" if misses else "every bar is met")


def _seconds(text: str) -> float:
    value = float(text)
    if not 1 <= value <= 120:
        raise argparse.ArgumentTypeError("give 1 to 120 seconds")
    return value


def _messages(text: str) -> int:
    value = int(text.replace(",", "").replace("_", ""))
    if not 1_000 <= value <= 5_000_000:
        raise argparse.ArgumentTypeError("give 1,000 to 5,000,000 messages")
    return value


def _turns(text: str) -> int:
    value = int(text.replace(",", "").replace("_", ""))
    if not 100 <= value <= 200_000:
        raise argparse.ArgumentTypeError("give 100 to 200,000 turns")
    return value


def _interrupted(*_: object) -> NoReturn:
    raise SystemExit(143)


if __name__ == "__main__":
    run_script(main)
