"""`scripts/chaos --short`: nothing is lost, doubled, or other than stored."""

from __future__ import annotations

import faulthandler
import json
import subprocess
import sys
from typing import Any

import pytest

from lab.chaos.__main__ import NAMES
from lab.doubles.lite import missing
from lab.doubles.processes import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def figures() -> dict[str, dict[str, Any]]:
    faulthandler.cancel_dump_traceback_later()  # this takes as long as it takes
    done = subprocess.run(
        [sys.executable, "-m", "lab.chaos", "--short", "--json"],
        cwd=ROOT, capture_output=True, text=True, timeout=1500, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    return {one["name"]: one for one in json.loads(done.stdout)["figures"]}


@pytest.mark.parametrize("name", NAMES)
def test_everybody_is_answered_once_and_what_is_stored_is_what_was_seen(
    figures: dict[str, dict[str, Any]], name: str
) -> None:
    faults = {
        fault: figures[f"{name}: {fault}"] for fault in ("lost", "doubled", "other than stored")
    }
    assert [one["value"] for one in faults.values()] == [0, 0, 0], faults
    assert "of 0 in" not in faults["lost"]["note"] or (name == "supabase" and missing())
