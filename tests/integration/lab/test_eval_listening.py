"""`scripts/eval_listening` evaluates the rules on labelled messages, and learns from them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from lab.doubles.processes import ROOT, clean_environment


def eval_listening(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / "scripts" / "eval_listening"), *arguments]
    environment = clean_environment() | more
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=180, check=False
    )


def test_the_rules_are_evaluated_on_a_labelled_file() -> None:
    file = str(ROOT / "tests" / "data" / "followups.jsonl")

    reports = json.loads(eval_listening(file, "--json").stdout)

    assert {"all", "dev", "held"} <= reports.keys()
    assert reports["all"]["precision"] > 0.9
    assert eval_listening("no such file").returncode == 2


def test_only_learning_needs_the_packages_of_the_tests(tmp_path: Path) -> None:
    (tmp_path / "sklearn.py").write_text("raise ModuleNotFoundError('No module named sklearn')")
    file = str(ROOT / "tests" / "data" / "followups.jsonl")

    learned = eval_listening("--learn", file, PYTHONPATH=str(tmp_path))

    assert (learned.returncode, "requirements-dev.txt" in learned.stderr) == (2, True)
    assert eval_listening(file, PYTHONPATH=str(tmp_path)).returncode == 0
