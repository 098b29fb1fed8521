"""What recall finds in the imported past of a group, beside plain BM25, and what it costs.

Makes the sandbox's group with a past, imports it into a throw-away embedded database as the bot
does, and asks the labelled questions (`tests/data/recall/past_questions.jsonl`) as a member. A
second chat of 1,000 messages beside it is asked the same in turn, for the cost.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from lab.benchmark.processes import postmaster, stop_server
from lab.evaluation.databases import fresh_database
from lab.evaluation.past_recall import FEW, PastRecall, evaluate_past
from lab.evaluation.recall_table import table
from memory.backends import embedded
from scripts.operating.arguments import run_script

_EXAMPLES = """examples:
  scripts/eval_past                      a chat of 20,000 messages
  scripts/eval_past --messages 100000    of 100,000, which takes minutes to import
  scripts/eval_past --json
"""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    with tempfile.TemporaryDirectory(prefix="eval-past-") as folder:
        server = embedded.start(Path(folder))
        try:
            url = fresh_database(server, "past")
            found = asyncio.run(evaluate_past(url, options.messages, options.k, _progress))
        finally:
            stop_server(postmaster(Path(folder)))
    if options.json:
        print(json.dumps(asdict(found)))
    else:
        _print(found)
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="eval_past",
        description=__doc__,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--messages", type=int, default=20_000, help="of the chat (20,000)")
    parser.add_argument("--k", type=int, nargs="+", default=[1, 5, 10])
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    return parser.parse_args(arguments)


def _print(past: PastRecall) -> None:
    ks = list(past.shares[0].found)
    head = ["questions", "count", *(f"R@{k}" for k in ks), *(f"BM25 R@{k}" for k in ks)]
    rows = [
        [
            one.questions,
            str(one.count),
            *(f"{share:.1%}" for share in one.found.values()),
            *(f"{share:.1%}" for share in one.plain.values()),
        ]
        for one in past.shares
    ]
    print(table([head, *(row + ["-"] * (len(head) - len(row)) for row in rows)]))
    for question in past.missed:
        print(f"not among the first five: {question}")
    costs = ", ".join(f"{ms:.1f} ms at {size:,}" for size, ms in past.cpu_ms.items())
    times = max(past.cpu_ms.values()) / past.cpu_ms[FEW]
    print(f"processor time of a recall: {costs} messages, {times:.2f} times")


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    run_script(main)
