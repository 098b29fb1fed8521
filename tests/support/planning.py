"""Pytest plugin: runs the heaviest modules first, and reports the seconds of each module."""

from __future__ import annotations

import faulthandler
import gc
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from xdist.scheduler import WorkStealingScheduling

from tests.support import durations


class PlannedWorkStealing(WorkStealingScheduling):  # type: ignore[misc]
    """Work stealing whose first shares take equal time instead of having equal numbers of tests."""

    def schedule(self) -> None:
        if self.collection is None and self._check_nodes_have_same_collection():
            self.collection = next(iter(self.node2collection.values()))
            parts = durations.shares(self.collection, len(self.nodes), durations.stored())
            for node, part in zip(self.nodes, parts, strict=True):
                self.pending[:] = part
                self._send_tests(node, len(part))
        if self.collection:
            self.check_schedule()


_HANGS_S = 2 * 3600


class Stopwatch:
    """Adds up set-up, call and teardown of a module's tests."""

    def __init__(self, *, keep: bool) -> None:
        self.keep, self._began = keep, time.monotonic()
        self.seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[durations.module_of(report.nodeid)] += report.duration

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        total = sum(self.seconds.values())
        terminalreporter.section(f"seconds by module ({total:.0f} in all)")
        for module, seconds in self.seconds.most_common(50):
            terminalreporter.write_line(f"{seconds:8.1f} {module}")
        if self.keep:
            durations.store(self.seconds, time.monotonic() - self._began)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--module-durations",
        choices=("none", "show", "store"),
        default="none",
        help="print the seconds of each module; 'store' also writes tests/durations.json",
    )


def pytest_configure(config: pytest.Config) -> None:
    wanted = config.getoption("--module-durations")
    if wanted != "none" and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Stopwatch(keep=wanted == "store"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collects without looking for garbage: hardly anything of it is."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Ends a run that hangs outside of its tests, where no other limit holds."""
    if session.config.getoption("numprocesses", None):
        faulthandler.dump_traceback_later(_HANGS_S, exit=True)


def pytest_sessionfinish() -> None:
    faulthandler.cancel_dump_traceback_later()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.getoption("dist") == "worksteal":
        return PlannedWorkStealing(config, log)
    return None
