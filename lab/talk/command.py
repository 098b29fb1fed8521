"""scripts/bench --talk: the bot among people who talk, mostly not to it.

20 groups of 60 people, half of them Chinese, whose talk is that of the written discussions in
tests/data. Their chats go on: every second question stays in its thread. Mentions and lines come by
the clock, whether earlier ones are answered or not; times count from when a question was due. The
model streams its answer in eight pieces, the last when its time is over. Feishu's own limit
(FEISHU_CALLS_PER_SECOND) is lifted, because it hides that of the program.

Examples:
  scripts/bench --talk                                 5, 25 and 50 mentions a second, model 2 s
  scripts/bench --talk --model 0.3 2 8 30 --rate 25    slower models too
  scripts/bench --talk --against ../main               this version beside another, in turn
  scripts/bench --talk --ratio 5 --history 800         more talk, in chats with a past (a transcript
                                                       is full after 200 messages a chat)
  scripts/bench --talk --rate 50 --seconds 60 --streaming off --json >talk.json

How it is counted: processor time is that of the bot's processes, from the first arrival until the
bot has nothing left to do, less what it takes at rest. A line where the bot has not spoken: a phase
of such lines only. A line where it takes part, and a mention: phases with two ratios, 10 mentions
and 5 lines a second and 2.5 mentions and 40 lines, in the same chats; both unknowns are solved from
them, by part (least squares). Wake-ups, how often a thread that waited went on, are counted
likewise. Lines that the bot answers count as mentions. The people and Feishu are this process: what
it takes of the processor is shown, and every arrival that it sent more than 50 ms late is counted.
Bare Flask is asked by the same people in the same round: it verifies, decrypts, asks the model and
replies.

Bars are those of the defaults. A default run takes less than three minutes on a machine with
nothing else to do, one of --against DIR four times as long. DIR needs nothing but the bot, of any
version: it is only started and talked to. A revision of this repository in its place is checked out
below .versions once, with the packages it needs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from lab.benchmark.checkouts import ROOT, Checkout, checkout_at, compared_checkout
from lab.benchmark.figures import FailedMeasure, compared
from lab.benchmark.machine import describe_machine
from lab.benchmark.processes import postmaster, stop_server
from lab.benchmark.reports import comparison, report, table
from lab.talk.rounds import Rounds, stand_ins
from lab.talk.runs import MEASURES, TalkPlan
from lab.talk.targets import SENT_LATE

_PAGE_WIDTH = 180  # of a file or a pipe, in characters
_RATES = "mentions a second (5 25 50)"
_MODES = {"on": (True,), "off": (False,), "both": (False, True)}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    usual = TalkPlan()
    made = argparse.ArgumentParser(
        prog="bench --talk",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = made.add_argument
    add("--talk", action="store_true", required=True)
    add("--model", type=_from_to(0.1, 60), nargs="+", default=usual.models, help="s an answer (2)")
    add("--rate", type=_from_to(0.5, 200), nargs="+", default=usual.rates, help=_RATES)
    add("--ratio", type=_from_to(0, 20), default=usual.ratio, help="lines to a mention (2)")
    add("--seconds", type=_from_to(1, 1800), default=usual.seconds, help="of each load (8)")
    add("--only", action="append", choices=MEASURES, help="may be repeated (all)")
    add("--history", type=_from_to(0, 1e5), default=usual.history, help="mentions before (100)")
    add("--streaming", choices=_MODES, default="on", help="answers (on)")
    add("--random", action="store_true", help="arrivals at random moments, not evenly spaced")
    add("--patience", type=_from_to(1, 600), default=usual.patience_s, help="s for answers (60)")
    add("--places", type=int, help="WORKER_CONCURRENCY (as the bot has it)")
    add("--calls", type=int, default=usual.calls_per_second, help="FEISHU_CALLS_PER_SECOND (10000)")
    add("--workers", type=int, choices=range(1, 9), default=1, help="worker processes (1)")
    add("--against", type=compared_checkout, metavar="DIR", help="a checkout or revision")
    add("--runs", type=int, choices=range(1, 10), help="of each version (1; 2 with --against)")
    add("--json", action="store_true", help="print JSON instead of the table")
    return made


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; 1 when something could not be measured, 130 when it was interrupted."""
    options = parser().parse_args(arguments)
    machine, this = describe_machine(), checkout_at(ROOT)
    with tempfile.TemporaryDirectory(prefix="talk-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        try:
            rounds = asyncio.run(_measure(options, this, folder))
        except KeyboardInterrupt:
            return 130
        finally:
            for data_dir in filter(Path.is_dir, folder.iterdir()):
                stop_server(postmaster(data_dir))
    _print(machine, rounds, this, options)
    return 1 if rounds.failed else 0


async def _measure(options: argparse.Namespace, this: Checkout, folder: Path) -> Rounds:
    console = Console(stderr=True, log_path=False)
    versions = [options.against, this] if options.against else [this]
    async with stand_ins(options, this, folder) as setting:
        rounds, count = Rounds(setting, _plan(options), console.log), options.runs or len(versions)
        for number in range(count):
            title = f"round {number + 1} of {count}"
            await rounds.take(versions, title, _MODES[options.streaming])
        if unknown := setting.platform.unknown:
            reason = f"asked for {', '.join(sorted(unknown))}"
            rounds.failed.append(FailedMeasure("platform", reason))
    return rounds


def _plan(options: argparse.Namespace) -> TalkPlan:
    return TalkPlan(
        models=options.model,
        rates=options.rate,
        ratio=options.ratio,
        seconds=options.seconds,
        history=int(options.history),
        patience_s=options.patience,
        at_random=options.random,
        measures=options.only or MEASURES,
        calls_per_second=options.calls,
    )


def _print(
    machine: dict[str, object], rounds: Rounds, this: Checkout, options: argparse.Namespace
) -> None:
    these, others = rounds.of(this.label), rounds.of("against")
    rows = compared(these, others) if others else ()
    if options.json:
        made = report({**machine, **_said(options)}, these, rounds.failed, rows)
        print(json.dumps(made, ensure_ascii=False, indent=2))
        return
    console = Console(width=None if sys.stdout.isatty() else _PAGE_WIDTH)
    console.print(", ".join(f"{name} {value}" for name, value in machine.items()))
    console.print("; ".join(f"{name}: {value}" for name, value in _said(options).items()))
    console.print(comparison(rows, this.title, options.against.title) if others else table(these))
    for one in rounds.failed:
        console.print(f"not measured: {one.measure}: {one.reason}", markup=False)
    for figure in (*these, *others):
        if figure.name.endswith(SENT_LATE) and figure.value:
            late = f"{figure.value:g} arrivals, {figure.note}"
            console.print(f"the driver was late, {figure.title}: {late}", markup=False)
    misses = [figure.title for figure in these if figure.verdict == "miss"]
    console.print(f"missed: {'; '.join(misses)}" if misses else "every bar is met")


def _said(options: argparse.Namespace) -> dict[str, object]:
    """The conditions, as the output names them."""
    lifted = " (lifted: Feishu's own limit is 50)" if options.calls > 50 else ""
    return {
        "streaming": options.streaming,
        "lines to a mention": options.ratio,
        "places of a worker": options.places or "as the bot has them",
        "FEISHU_CALLS_PER_SECOND": f"{options.calls}{lifted}",
        "arrivals": "at random moments" if options.random else "evenly spaced",
        "mentions before": int(options.history),
    }


def _from_to(least: float, most: float) -> Callable[[str], float]:
    def number(text: str) -> float:
        value = float(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"give {least:g} to {most:g}")
        return value

    return number
