"""A short round of every experiment of `scripts/bench --faults`: nothing is lost, doubled, or other
than stored, and nothing is left that had to go. The whole of it takes about eight minutes."""

from __future__ import annotations

import faulthandler
import json
import subprocess
import sys
from typing import Any

import pytest

from lab.doubles.lite import missing
from lab.doubles.processes import ROOT
from lab.faults.command import in_short

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def counts() -> dict[str, dict[str, Any]]:
    faulthandler.cancel_dump_traceback_later()  # this takes as long as it takes
    done = subprocess.run(
        [sys.executable, "-m", "lab.bench", "--faults", "--short", "--json"],
        cwd=ROOT, capture_output=True, text=True, timeout=1500, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    return {count["experiment"]: count for count in json.loads(done.stdout)}


@pytest.mark.parametrize("name", in_short())
def test_everybody_is_answered_once_and_what_is_stored_is_what_was_seen(
    counts: dict[str, dict[str, Any]], name: str
) -> None:
    count = counts[name]

    faults = [count[one] for one in ("lost", "doubled", "mismatched", "shown")]
    assert faults == [0, 0, 0, 0], count["details"]
    assert count["pushed"] or (name in ("supabase", "taken-back") and missing())
