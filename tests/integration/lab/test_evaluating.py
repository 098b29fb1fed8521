"""`scripts/evaluate` puts what it evaluates into one table, and `lab.learning` learns weights."""

from __future__ import annotations

import json
import subprocess
import sys

from lab.doubles.processes import ROOT, clean_environment

_LABELLED = str(ROOT / "tests" / "data" / "followups.jsonl")


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=ROOT, env=clean_environment(), capture_output=True, text=True, timeout=180,
        check=False,
    )  # fmt: skip


def test_parts_are_evaluated_by_name_and_what_cannot_be_read_is_named() -> None:
    script = str(ROOT / "scripts" / "evaluate")

    done = run(script, "listening", "forgetting", "--labelled", _LABELLED, "--json")

    found = {one["name"]: one["value"] for one in json.loads(done.stdout)["figures"]}
    assert found["followups.jsonl: precision"] > 0.9
    assert found["followups.jsonl, held: recall"] > 0.9
    assert found["forgetting: right items"] == 100
    missing = run(script, "listening", "--labelled", "no such file")
    assert (missing.returncode, "no such file" in missing.stdout) == (1, True)
    assert run(script, "everything").returncode == 2


def test_weights_are_learned_from_labelled_messages() -> None:
    learned = run(sys.executable, "-m", "lab.learning", "addressees", _LABELLED)

    assert {"traits", "words"} <= json.loads(learned.stdout).keys()
    assert run(sys.executable, "-m", "lab.learning", "links", "no such file").returncode == 2
