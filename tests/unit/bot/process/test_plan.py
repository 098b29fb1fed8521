"""What the processes of one command are started with."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bot.process import plan


def planned() -> plan.ProcessPlan:
    return plan.ProcessPlan("127.0.0.1:8080", 1, 1, "INFO", "data", embedded=True, remarks=[])


def test_the_threads_of_a_process_share_one_heap() -> None:
    [worker] = plan.worker_programs(planned())
    assert dict(worker.environment or {})["MALLOC_ARENA_MAX"] == "1"


def test_who_chooses_the_number_of_heaps_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALLOC_ARENA_MAX", "4")
    [worker] = plan.worker_programs(planned())
    assert dict(worker.environment or {})["MALLOC_ARENA_MAX"] == "4"


def test_a_plan_is_handed_over_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(plan.PLAN_VARIABLE, planned().as_json())
    assert plan.read_plan() == planned()


def test_the_supervisor_loads_no_introspection() -> None:
    script = (
        "import sys, bot.process.supervisor\nprint({'dataclasses', 'inspect'} & set(sys.modules))"
    )
    found = subprocess.check_output([sys.executable, "-c", script], text=True)
    assert found.strip() == "set()"
