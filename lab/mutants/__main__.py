"""Runs mutants of the code against the tests that cover them: does any test fail?

`lab/mutants/*_mutants.jsonl` lists the mutants, and `baseline.jsonl` says which of them the tests
killed when the list was made. Run it after tests were removed: a mutant that the baseline killed
and that survives now has lost its test. A mutant that changes nothing for anybody is `equivalent`
there, with the reason, and runs only if it is named. Works on a copy of the checkout.

Examples:
  python -m lab.mutants run                      all of them: half an hour on two free cores
  python -m lab.mutants run --only outbox-003 --tests tests/unit/bot/outbox/test_delivery.py
  python -m lab.mutants run --survivors          those that the baseline does not call killed
  python -m lab.mutants table                    the baseline
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lab.mutants.records import FOLDER, Mutant, Placed, load, place, rows
from lab.mutants.session import CONTROL, PLAN

ROOT = FOLDER.parent.parent
_NOT_COPIED = {".git", ".venv", "node_modules", "data"}  # of the first level
_DEAD = ("killed", "timed out")
_COLUMNS = (*_DEAD, "equivalent", "survived", "out of time", "stale", "not run")

Outcomes = dict[str, dict[str, Any]]


def main(arguments: Sequence[str] | None = None) -> int:
    """0; 1 when a mutant is alive that the baseline killed, or when tests fail without any."""
    given = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    baseline = {row["id"]: row for row in rows(FOLDER / "baseline.jsonl")}
    mutants = [one for one in load() if not given.only or one.id in given.only]
    if given.command == "table":
        show(mutants, baseline, baseline)
        return 0
    left_out = ("equivalent", *_DEAD) if given.survivors else ("equivalent",)
    if not given.only:
        skipped = {one for one, row in baseline.items() if row["outcome"] in left_out}
        mutants = [one for one in mutants if one.id not in skipped]
    results = given.results.absolute()
    outcomes = run(mutants, ROOT, results, tests=given.tests, limit_s=given.limit)
    return int(show(mutants, outcomes, baseline) or outcomes[CONTROL]["outcome"] != "survived")


def run(
    mutants: Sequence[Mutant],
    root: Path,
    results: Path,
    *,
    tests: Sequence[str] = (),
    limit_s: float = 90.0,
) -> Outcomes:
    """Runs the mutants of the checkout at `root`, writes each outcome to `results` at once, and
    returns them by id. The tests of the modules `tests` take the place of each mutant's own."""
    placed = [(one, place(one, root)) for one in mutants]
    stale = [json.dumps({"id": one.id, "outcome": "stale"}) for one, at in placed if at is None]
    results.parent.mkdir(parents=True, exist_ok=True)
    results.write_text("".join(f"{line}\n" for line in stale), encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / "checkout"
        shutil.copytree(root, copy, ignore=partial(_left_out, root))
        if (root / "node_modules").exists():
            (copy / "node_modules").symlink_to((root / "node_modules").resolve())
        planned = [_planned(at, tests) for _, at in placed if at]
        modules = {name.split("::")[0] for row in planned for name in row["tests"]}
        plan = {"mutants": planned, "results": str(results), "limit_s": limit_s}
        _pytest(copy, plan, sorted(one for one in modules if (copy / one).exists()))
    return {row["id"]: row for row in rows(results)}


def _left_out(root: Path, folder: str, names: Sequence[str]) -> set[str]:
    return _NOT_COPIED if Path(folder) == root else {"__pycache__"} & {*names}


def _planned(at: Placed, tests: Sequence[str]) -> dict[str, Any]:
    own = [f"{module}::{name}" for module, names in at.mutant.tests.items() for name in names]
    where = {"path": at.path, "text": at.text, "statement": at.statement}
    return {"id": at.mutant.id, **where, "tests": list(tests) or own}


def _pytest(copy: Path, plan: Mapping[str, Any], modules: Sequence[str]) -> None:
    """Runs the plan in one pytest session. Shows the end of its output if it fails by itself."""
    file, log = copy.parent / "plan.json", copy.parent / "pytest.log"
    file.write_text(json.dumps(plan), encoding="utf-8")
    # CI: hypothesis looks at the same examples every time, and a missing service is a failure
    environment = os.environ | {PLAN: str(file), "CI": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    options = ["-p", "lab.mutants.session", "-p", "no:cacheprovider", "-q", "-s", "--tb=native"]
    with log.open("wb") as out:
        session = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *modules],
            cwd=copy,
            env=environment,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        status = session.wait()
    finally:  # when this process is told to end, the session ends with what it started
        session.terminate()
        session.wait()
    if status not in (0, 5):  # 5: that process itself ran no test
        print(log.read_text(encoding="utf-8", errors="replace")[-3000:], file=sys.stderr)


def show(mutants: Sequence[Mutant], outcomes: Outcomes, baseline: Outcomes) -> int:
    """Prints the table by area, and below it the mutants that are alive. Returns how many of these
    the baseline killed."""
    kinds = {one.id: outcomes.get(one.id, {"outcome": "not run"})["outcome"] for one in mutants}
    killed = {one for one, row in baseline.items() if row["outcome"] == "killed"}
    print(f"{'area':26}{'mutants':>9}", *(f"{column:>12}" for column in _COLUMNS))
    areas = {
        one.id: f"{one.area}, {'Python' if one.file[-3:] == '.py' else 'SQL'}" for one in mutants
    }
    for area in (*sorted(set(areas.values())), "all"):
        counts = Counter(kinds[one] for one, its in areas.items() if area in (its, "all"))
        print(f"{area:26}{counts.total():9}", *(f"{counts[column]:12}" for column in _COLUMNS))
    alive = [one for one in mutants if kinds[one.id] not in ("equivalent", *_DEAD)]
    for one in alive:
        lost = " (was killed)" if one.id in killed else ""
        change = (
            one.statement or f"{one.file}, {one.function}: {one.find} → {one.replace or 'nothing'}"
        )
        print(f"{one.id} {kinds[one.id]}{lost}: {' '.join(change.split())}")
    if (control := outcomes.get(CONTROL)) and control["outcome"] != "survived":
        print(f"not to be relied on: without a mutant a test fails, too: {control}")
    return sum(one.id in killed for one in alive)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m lab.mutants", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("command", choices=("run", "table"))
    parser.add_argument("--only", nargs="+", metavar="ID")
    parser.add_argument("--survivors", action="store_true", help="alive in the baseline")
    parser.add_argument("--tests", nargs="+", metavar="MODULE", default=(), help="not their own")
    parser.add_argument("--limit", type=float, default=90.0, help="seconds for one mutant")
    parser.add_argument("--results", type=Path, default=ROOT / "data" / "mutants.jsonl")
    return parser


if __name__ == "__main__":
    sys.exit(main())
