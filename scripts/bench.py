"""Measures the bot as it runs, on this machine, against the bars it has to meet.

Real processes (gunicorn, worker, embedded Postgres with normal durability), signed and encrypted
events, a stand-in model that takes 300 ms. Feishu is answered by the load generator itself, which
costs little; neither it nor the model counts as CPU of the bot. A full run takes about five
minutes and 2 GB in the temporary folder.

Examples:
  scripts/bench                          everything
  scripts/bench --quick                  a first impression in about a minute
  scripts/bench --only mentions --seconds 30 --workers 2
  scripts/bench --only ack --only footprint --json >numbers.json

Measures: ack (the webhook), mentions (overhead, throughput, CPU), footprint (start-up and idle
memory as one command), memory (load and save with much in it). A missed bar is reported as MISS;
the exit status is 1 only when something could not be measured.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NoReturn

import psycopg
from rich.console import Console

from memory.backends import embedded
from memory.migrations import MigrationFailed
from scripts.measuring.figures import Failed, Figure, report, table
from scripts.measuring.footprint import measure_footprint
from scripts.measuring.mentions import measure_ack, measure_mentions
from scripts.measuring.platform import StandIn
from scripts.measuring.processes import NotMeasured, postmaster, stop_server
from scripts.measuring.remembering import measure_memory
from scripts.measuring.setting import Setting

_LONGEST_S = 900.0
MEASURES = ("ack", "mentions", "footprint", "memory")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--quick", action="store_true", help="3 s per load, 100,000 messages")
    made.add_argument("--only", action="append", choices=MEASURES, help="may be repeated")
    made.add_argument("--seconds", type=_seconds, help="of each load (10; 1 to 120)")
    made.add_argument("--messages", type=_messages, help="in the large memory (1,000,000)")
    made.add_argument(
        "--workers", type=int, choices=range(1, 9), default=1, help="worker processes (1)"
    )
    made.add_argument(
        "--one-command", action="store_true", help="web and workers as the one command runs them"
    )
    made.add_argument("--json", action="store_true", help="print JSON instead of the table")
    return made


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; 1 when a measure could not be taken."""
    options = parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupted)
    console = Console(stderr=True)
    machine = describe_machine()
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        try:
            figures, failed = asyncio.run(_measure(options, folder, console))
        finally:
            stop_server(postmaster(folder))
    if options.json:
        print(json.dumps(report(machine, figures, failed), ensure_ascii=False, indent=2))
    else:
        _print(machine, figures, failed)
    return 1 if failed else 0


def describe_machine() -> dict[str, object]:
    """What the figures depend on; `load` is the load average (1 min) before the run."""
    return {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
        "cores": os.cpu_count() or 0,
        "cpu": _cpu_model(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
    }


async def _measure(
    options: argparse.Namespace, folder: Path, console: Console
) -> tuple[list[Figure], list[Failed]]:
    stand_in = StandIn()
    await stand_in.start()
    setting = Setting(
        folder=folder,
        server_url=embedded.start(folder),
        platform=stand_in,
        seconds=options.seconds or (3.0 if options.quick else 10.0),
        quick=options.quick,
        workers=options.workers,
        one_command=options.one_command,
        messages=options.messages or (100_000 if options.quick else 1_000_000),
    )
    figures: list[Figure] = []
    failed: list[Failed] = []
    for name in options.only or MEASURES:
        console.log(f"measuring {name}")
        try:
            async with asyncio.timeout(_LONGEST_S):
                figures += await _measures(setting, console)[name]()
        except (NotMeasured, MigrationFailed, psycopg.Error, OSError, TimeoutError) as exc:
            failed.append(Failed(name, f"{type(exc).__name__}: {exc}"))
    if stand_in.unknown:
        failed.append(Failed("platform", f"asked for {', '.join(sorted(stand_in.unknown))}"))
    await stand_in.stop()
    return figures, failed


def _measures(
    setting: Setting, console: Console
) -> dict[str, Callable[[], Awaitable[list[Figure]]]]:
    return {
        "ack": lambda: measure_ack(setting),
        "mentions": lambda: measure_mentions(setting),
        "footprint": lambda: measure_footprint(setting),
        "memory": lambda: measure_memory(setting, console.log),
    }


def _print(machine: dict[str, object], figures: list[Figure], failed: list[Failed]) -> None:
    console = Console()
    console.print(", ".join(f"{name} {value}" for name, value in machine.items()))
    console.print("Feishu: the load generator itself; model: a stand-in that takes 300 ms")
    console.print(table(figures))
    for one in failed:
        console.print(f"not measured: {one.measure}: {one.reason}", markup=False)
    misses = [figure.name for figure in figures if figure.verdict == "miss"]
    console.print(f"missed: {', '.join(misses)}" if misses else "every bar is met")


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


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


def _interrupted(*_: object) -> NoReturn:
    raise SystemExit(143)


if __name__ == "__main__":
    sys.exit(main())
