"""`scripts/decisions` of a checkout evaluates the rules, too."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from lab.doubles.processes import ROOT, clean_environment


def decisions(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / "scripts" / "decisions"), *arguments]
    environment = clean_environment() | more
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=180, check=False
    )


def test_the_rules_are_evaluated_on_a_labelled_file() -> None:
    file = str(ROOT / "tests" / "data" / "followups.jsonl")

    reports = json.loads(decisions("--evaluate", file, "--json").stdout)

    assert {"all", "dev", "held"} <= reports.keys()
    assert reports["all"]["precision"] > 0.9
    assert decisions("--evaluate", "no such file").returncode == 2


def test_its_help_has_the_operators_options_and_those_of_the_lab() -> None:
    told = decisions("--help").stdout

    assert "--since" in told
    assert "--learn" in told
    assert "\n  scripts/decisions --evaluate tests/data/followups.jsonl\n" in told


def test_only_learning_needs_the_packages_of_the_tests(tmp_path: Path) -> None:
    (tmp_path / "sklearn.py").write_text("raise ModuleNotFoundError('No module named sklearn')")
    file = str(ROOT / "tests" / "data" / "followups.jsonl")

    learned = decisions("--learn", file, PYTHONPATH=str(tmp_path))

    assert (learned.returncode, "requirements-dev.txt" in learned.stderr) == (2, True)
    assert decisions("--evaluate", file, PYTHONPATH=str(tmp_path)).returncode == 0
