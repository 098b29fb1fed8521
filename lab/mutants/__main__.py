"""Runs mutants of the code against the tests that cover them: does any test fail?

The mutants are in `lab/mutants/*_mutants.jsonl`, and in `baseline.jsonl` which of them the tests
killed when the list was made. Run it after tests were removed: a mutant that the baseline killed
and that survives now has lost its test. Works on a copy of the checkout.

Examples:
  python -m lab.mutants run                      all of them: about half an hour
  python -m lab.mutants run --only outbox-003 --tests tests/unit/bot/outbox
  python -m lab.mutants run --survivors          those that survived the baseline
  python -m lab.mutants table                    the baseline
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from lab.mutants.records import FOLDER, Mutant, Placed, load, place, rows
from lab.mutants.session import CONTROL, PLAN

ROOT = FOLDER.parent.parent
BASELINE = FOLDER / "baseline.jsonl"
_NOT_COPIED = (".git", ".venv", "node_modules", "data", "__pycache__", ".*_cache", ".hypothesis")
_COLUMNS = ("killed", "survived", "timed out", "stale", "other")
_NO_SUPABASE = "[supabase"  # these cases start Node, and the same test runs on Postgres

Outcomes = dict[str, dict[str, Any]]


def main(arguments: Sequence[str] | None = None) -> int:
    """0; 1 when a mutant survives that the baseline killed, or when the tests did not run."""
    given = _parser().parse_args(arguments)
    mutants, baseline = load(), {row["id"]: row for row in rows(BASELINE)}
    if given.command == "table":
        show(mutants, baseline, Console())
        return 0
    if given.only:
        mutants = [one for one in mutants if one.id in given.only]
    if given.survivors:
        survived = {one for one, row in baseline.items() if row["outcome"] == "survived"}
        mutants = [one for one in mutants if one.id in survived]
    results = given.results.absolute()
    outcomes = run(mutants, ROOT, results, tests=given.tests, limit_s=given.limit)
    show(mutants, outcomes, Console(), baseline)
    is_lost = any(_is_lost(one.id, outcomes, baseline) for one in mutants)
    return int(is_lost or outcomes.get(CONTROL, {}).get("outcome") != "survived")


def run(
    mutants: Iterable[Mutant],
    root: Path,
    results: Path,
    *,
    tests: Sequence[str] = (),
    limit_s: float = 90.0,
) -> Outcomes:
    """Runs the mutants of the checkout at `root`, writes each outcome to `results` at once, and
    returns them by id. `tests` (modules or folders) take the place of each mutant's own."""
    placed = [(one, place(one, root)) for one in mutants]
    results.parent.mkdir(parents=True, exist_ok=True)
    stale = [json.dumps({"id": one.id, "outcome": "stale"}) for one, at in placed if at is None]
    results.write_text("".join(f"{line}\n" for line in stale), encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / "checkout"
        shutil.copytree(root, copy, ignore=shutil.ignore_patterns(*_NOT_COPIED))
        if (root / "node_modules").exists():
            (copy / "node_modules").symlink_to((root / "node_modules").resolve())
        plan = {
            "mutants": [_planned(at, tests) for _, at in placed if at],
            "results": str(results),
            "limit_s": limit_s,
            "skip": _NO_SUPABASE,
        }
        modules = {name.split("::")[0] for row in plan["mutants"] for name in row["tests"]}
        _pytest(copy, plan, sorted(one for one in modules if (copy / one).exists()))
    return {row["id"]: row for row in rows(results)}


def _planned(at: Placed, tests: Sequence[str]) -> dict[str, Any]:
    own = [f"{module}::{name}" for module, names in at.mutant.tests.items() for name in names]
    return {
        "id": at.mutant.id,
        "path": at.path,
        "text": at.text,
        "statement": at.statement,
        "tests": list(tests) or own,
    }


def _pytest(copy: Path, plan: Mapping[str, Any], modules: Sequence[str]) -> None:
    """Runs the plan in one pytest session, whose output is shown only if it cannot collect."""
    if not modules:
        return
    file, log = copy.parent / "plan.json", copy.parent / "pytest.log"
    file.write_text(json.dumps(plan), encoding="utf-8")
    # CI: hypothesis looks at the same examples every time, and a missing service is a failure
    environment = os.environ | {PLAN: str(file), "CI": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("PYTHONPATH", None)
    options = ["-p", "lab.mutants.session", "-p", "no:cacheprovider", "-q", "-s"]
    with log.open("wb") as out:
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *modules],
            cwd=copy,
            env=environment,
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if ended.returncode not in (0, 5):  # 5: no test ran in that process itself
        print(log.read_text(encoding="utf-8", errors="replace")[-3000:], file=sys.stderr)


def show(
    mutants: Sequence[Mutant],
    outcomes: Outcomes,
    console: Console,
    baseline: Outcomes | None = None,
) -> None:
    """Prints the table by area, and below it every mutant that no test killed."""
    table = Table("area", "", "mutants", *_COLUMNS)
    kinds = {one.id: _column(outcomes.get(one.id, {}).get("outcome", "")) for one in mutants}
    for area, language in sorted({(one.area, one.language) for one in mutants}):
        ids = [one.id for one in mutants if (one.area, one.language) == (area, language)]
        table.add_row(area, language, *_counts(ids, kinds))
    table.add_row("all", "", *_counts(list(kinds), kinds))
    console.print(table)
    for one in mutants:
        if kinds[one.id] != "killed":
            lost = " (the baseline killed it)" if _is_lost(one.id, outcomes, baseline or {}) else ""
            console.print(f"{one.id} {kinds[one.id]}{lost}: {one.change}", markup=False)
    if (control := outcomes.get(CONTROL)) and control["outcome"] != "survived":
        console.print(f"unreliable: without a mutant, too: {control}", markup=False)


def _column(outcome: str) -> str:
    return outcome if outcome in _COLUMNS else "other"


def _counts(ids: Sequence[str], kinds: Mapping[str, str]) -> list[str]:
    counts = Counter(kinds[one] for one in ids)
    return [str(len(ids)), *(str(counts[column]) for column in _COLUMNS)]


def _is_lost(mutant: str, outcomes: Outcomes, baseline: Outcomes) -> bool:
    was, now = (where.get(mutant, {}).get("outcome") for where in (baseline, outcomes))
    return was == "killed" and now not in ("killed", "timed out")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m lab.mutants", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("table", help="show the baseline")
    running = commands.add_parser("run", help="run mutants")
    running.add_argument("--only", nargs="+", metavar="ID")
    running.add_argument("--survivors", action="store_true", help="that survived the baseline")
    running.add_argument("--tests", nargs="+", metavar="PATH", default=(), help="instead of theirs")
    running.add_argument("--limit", type=float, default=90.0, help="seconds for one mutant")
    running.add_argument("--results", type=Path, default=ROOT / "data" / "mutants.jsonl")
    return parser


if __name__ == "__main__":
    sys.exit(main())
