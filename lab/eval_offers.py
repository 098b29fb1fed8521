"""After which answers a private offer is made, and how often it helps.

Loads the labelled cases of FILE into a throw-away embedded database and asks what the worker asks
after each answer, under the tokens of group and person.

  scripts/eval_offers                       the cases of tests/data/private_offers.jsonl
  scripts/eval_offers --split held          those that nothing was tuned on
  scripts/eval_offers FILE --json           one JSON document
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bot.settings import EXIT_STATUS
from lab.benchmark.processes import postmaster, stop_server
from lab.evaluation.databases import fresh_database
from lab.evaluation.private_offers import (
    OfferCase,
    OfferReport,
    load_offer_cases,
    offers_made,
    report,
)
from memory.backends import embedded
from scripts.operating.arguments import parser, run_script
from scripts.operating.console import Screen, print_json

_CASES = Path(__file__).parents[1] / "tests" / "data" / "private_offers.jsonl"


def main() -> int:
    given = _arguments()
    try:
        cases = load_offer_cases(given.file)
    except (OSError, ValueError) as exc:
        print(f"{given.file} cannot be read as labelled cases: {exc}", file=sys.stderr)
        return EXIT_STATUS
    cases = [one for one in cases if given.split in (None, one.split)]
    with tempfile.TemporaryDirectory(prefix="eval-offers-") as folder:
        server = embedded.start(Path(folder))
        try:
            offered = asyncio.run(offers_made(fresh_database(server, "offers"), cases))
        finally:
            stop_server(postmaster(Path(folder)))
    reports = {name: report(some, offered) for name, some in _groups(cases).items()}
    print_json({name: _figures(one) for name, one in reports.items()}) if given.json else _show(
        reports, cases
    )
    return 0


def _arguments() -> argparse.Namespace:
    options = parser("eval_offers", __doc__)
    options.add_argument("file", type=Path, nargs="?", default=_CASES, metavar="FILE")
    options.add_argument("--split", help="the cases of one half: tune or held")
    options.add_argument("--json", action="store_true", help="one JSON document")
    return options.parse_args()


def _groups(cases: Sequence[OfferCase]) -> dict[str, list[OfferCase]]:
    names = sorted({f"{one.split}, {one.lang}" for one in cases})
    parts = {name: [one for one in cases if f"{one.split}, {one.lang}" == name] for name in names}
    splits = {
        name: [one for one in cases if one.split == name] for name in {c.split for c in cases}
    }
    return {**parts, **dict(sorted(splits.items()))}


def _figures(one: OfferReport) -> dict[str, object]:
    shares = {"precision": round(one.precision, 3), "missed_share": round(one.missed_share, 3)}
    return {**asdict(one), **shares}


def _show(reports: dict[str, OfferReport], cases: Sequence[OfferCase]) -> None:
    screen = Screen()
    screen.table(
        f"Offers after {len(cases)} questions",
        ("cases", "questions", "offered", "of them help %", "would help", "of them missed %"),
        [
            (name, str(one.cases), str(one.offered), f"{100 * one.precision:.0f}",
             str(one.would_help), f"{100 * one.missed_share:.0f}")
            for name, one in reports.items()
        ],
    )  # fmt: skip
    by_id = {one.id: one for one in cases}
    wrong = {case for one in reports.values() for case in one.wrong}
    missed = {case for one in reports.values() for case in one.missed}
    rows = [("no help", case) for case in sorted(wrong)] + [("missed", c) for c in sorted(missed)]
    screen.table(
        "Otherwise than labelled",
        ("", "case", "kind", "asked"),
        [(what, case, by_id[case].kind, by_id[case].asked) for what, case in rows],
    )


if __name__ == "__main__":
    run_script(main)
