"""Measures the bot among groups that talk, mostly not to it; alone or beside another version.

20 groups of 60 people, half of them Chinese, whose talk comes from the written discussions in
tests/data. Mentions and lines come by the clock, whether earlier ones are answered or not; times
count from when a question was due. The model streams its answer in eight pieces, the last when its
time is over. Real processes, embedded Postgres with normal durability, encrypted and signed events.

Examples:
  scripts/bench                                      costs, crowds, loads and memory: four minutes
  scripts/bench --only costs --against v1.0 --runs 3 beside a revision, in turn
  scripts/bench --only loads --rate 35 --model 0.3 2 8
  scripts/bench --only storage
  scripts/bench --soak 30                            half an hour at Feishu's ceiling, and a burst

costs: CPU of a line where the bot has not spoken, of one where it takes part, and of a mention, by
part. The last two are solved from phases with two ratios of lines to mentions (least squares).
crowds: 1, 20 and 100 people who wait for their answers. loads: each rate with each model. memory:
PSS at rest, by part. storage: bytes of a message on disk.

The people and Feishu are this process; their CPU is shown, and each message that was sent more than
50 ms late is counted. Feishu's limit (FEISHU_CALLS_PER_SECOND) is lifted, because it hides that of
the program. A revision is checked out below .versions, with the packages that only it needs, and
removed at the end. The exit status is 1 if something could not be measured.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

from rich.console import Console

from lab.bench.checkouts import Checkout, NotACheckout, checkout_at, compared
from lab.bench.processes import EXPECTED, Setting, stand_ins
from lab.bench.runs import TALK, TalkPlan, run_version
from lab.bench.soak import RememberingFeishu, SoakPlan, soak
from lab.bench.storage import measure_storage
from lab.bench.targets import figures
from lab.doubles.processes import ROOT, postmaster, stop_server
from lab.figures import FailedMeasure, Figure, Results, machine
from scripts.operating.arguments import run_script

MEASURES = (*TALK, "storage")


def parser() -> argparse.ArgumentParser:
    """Builds the command line."""
    usual, soaked = TalkPlan(), SoakPlan(0)
    made = argparse.ArgumentParser(
        prog="bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = made.add_argument
    add("--only", action="append", choices=MEASURES, help="repeatable")
    add("--against", metavar="REVISION", help="beside a revision, or a folder with a checkout")
    add("--runs", type=int, choices=range(1, 10), help="of each version (1; 2 with --against)")
    add("--model", type=_from_to(0.1, 60), nargs="+", default=usual.models, help="s an answer (2)")
    add("--rate", type=_from_to(0.5, 200), nargs="+", help="mentions a second (5 25 50; soak 50)")
    add("--ratio", type=_from_to(0, 20), default=usual.ratio, help="lines to a mention (2)")
    add("--seconds", type=_from_to(1, 1800), default=usual.seconds, help="of each load (8)")
    add("--history", type=_from_to(0, 1e5), default=usual.history, help="mentions before (100)")
    add("--streaming", choices=("on", "off"), default="on", help="answers (on)")
    add("--patience", type=_from_to(1, 600), default=usual.patience_s, help="s for answers (60)")
    add("--turns", type=_from_to(100, 200_000), default=3_000, help="of storage (3000)")
    add("--calls", type=int, default=10_000, help="FEISHU_CALLS_PER_SECOND (10000)")
    add("--workers", type=int, choices=range(1, 9), default=1, help="worker processes (1)")
    add("--soak", type=_from_to(0.1, 1440), metavar="MINUTES", help="what grows meanwhile")
    add("--burst", type=int, default=soaked.burst, help="mentions after the soak (1000)")
    add("--json", action="store_true", help="print JSON instead of the table")
    return made


def main(arguments: list[str] | None = None) -> int:
    """Measures and prints; 1 if something could not be measured, 130 if it was interrupted."""
    options = parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupted)
    results = Results(conditions=machine() | _said(options))
    with ExitStack() as stack:
        name = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True)
        )
        folder, this, against = Path(name), checkout_at(ROOT), None
        stack.callback(_stop_servers, folder)
        try:
            if options.against:
                against = stack.enter_context(compared(options.against))
            asyncio.run(_measure(options, this, against, folder, results))
        except NotACheckout as exc:
            print(f"bench: {exc}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            return 130
    other = against.title if against else ""
    return results.show(as_json=options.json, this=this.title, against=other)


async def _measure(
    options: argparse.Namespace,
    this: Checkout,
    against: Checkout | None,
    folder: Path,
    results: Results,
) -> None:
    console = Console(stderr=True, log_path=False)
    versions = [against, this] if against else [this]
    platform = RememberingFeishu() if options.soak else None
    limits = {"workers": options.workers, "calls_per_second": options.calls}
    async with stand_ins(folder, this, platform, **limits) as setting:
        runs = 1 if options.soak else options.runs or len(versions)
        for number in range(runs):
            for version in versions:
                title = f"round {number + 1} of {runs}, {version.title}"
                bench = Bench(options, setting, version, results, title, console.log)
                await bench.measure()
        if unknown := setting.platform.unknown:
            reason = f"asked for {', '.join(sorted(unknown))}"
            results.failed.append(FailedMeasure("platform", reason))


class Bench:
    """One round of one version."""

    def __init__(
        self,
        options: argparse.Namespace,
        setting: Setting,
        version: Checkout,
        results: Results,
        title: str,
        say: Callable[[str], object],
    ) -> None:
        self._options, self._setting, self._version = options, setting, version
        self._results, self._title, self._say = results, title, say

    async def measure(self) -> None:
        """Takes the wanted measures, and notes the one that fails."""
        wanted = self._options.only or TALK
        try:
            if self._options.soak:
                await self._soak()
                return
            if any(one in TALK for one in wanted):
                await self._talk([one for one in TALK if one in wanted])
            if "storage" in wanted:
                turns = int(self._options.turns)
                self._keep(await measure_storage(self._setting, self._version, turns, self._report))
        except EXPECTED as exc:
            self._results.failed.append(FailedMeasure.by(self._title, exc))

    async def _talk(self, measures: list[str]) -> None:
        plan = _plan(self._options, measures)
        run = await run_version(self._setting, self._version, plan, self._report)
        skipped = [FailedMeasure(self._title, reason) for reason in run.skipped]
        self._results.failed += skipped
        self._keep(figures(run, measures))

    async def _soak(self) -> None:
        options = self._options
        rate = (options.rate or [SoakPlan(0).rate])[0]
        plan = SoakPlan(options.soak, rate, options.ratio, options.burst)
        self._keep(await soak(self._setting, self._version, plan, self._report))

    def _keep(self, taken: list[Figure]) -> None:
        is_this = self._version.label == "this"
        (self._results.figures if is_this else self._results.others).extend(taken)

    def _report(self, text: str) -> None:
        self._say(f"{self._title}: {text}")


def _plan(options: argparse.Namespace, measures: list[str]) -> TalkPlan:
    return TalkPlan(
        models=options.model,
        rates=options.rate or TalkPlan().rates,
        ratio=options.ratio,
        seconds=options.seconds,
        history=int(options.history),
        patience_s=options.patience,
        streaming=options.streaming == "on",
        measures=measures,
    )


def _said(options: argparse.Namespace) -> dict[str, object]:
    """Names the conditions for the output."""
    lifted = " (lifted: Feishu's own limit is 50)" if options.calls > 50 else ""
    return {
        "streaming": options.streaming,
        "lines to a mention": options.ratio,
        "workers": options.workers,
        "FEISHU_CALLS_PER_SECOND": f"{options.calls}{lifted}",
        "mentions before": int(options.history),
    }


def _stop_servers(folder: Path) -> None:
    for data_dir in filter(Path.is_dir, folder.iterdir()):
        stop_server(postmaster(data_dir))


def _from_to(least: float, most: float) -> Callable[[str], float]:
    def number(text: str) -> float:
        value = float(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"give {least:g} to {most:g}")
        return value

    return number


def _interrupted(*_: object) -> NoReturn:
    raise SystemExit(143)


if __name__ == "__main__":
    run_script(main)
