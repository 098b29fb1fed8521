"""`scripts/bench` from end to end: the real bot, and nothing left of it afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from lab.doubles.processes import ROOT, eventually

pytestmark = pytest.mark.slow
_SHORT = ("--seconds", "1", "--history", "5", "--rate", "10", "--model", "0.3")


@contextmanager
def bench(folder: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Prints into `folder`, where its temporary files are too."""
    with (folder / "printed").open("wb") as printed, (folder / "progress").open("wb") as progress:
        process = subprocess.Popen(
            [sys.executable, "-m", "lab.bench", *_SHORT, *options],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(folder)},
            stdout=printed,
            stderr=progress,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(60)


def started_in(folder: Path) -> list[psutil.Process]:
    """Every process whose environment or command names the folder, but the bench itself."""
    found = []
    for process in psutil.process_iter():
        try:
            words = [*process.cmdline(), *process.environ().values()]
        except psutil.Error:
            continue
        if any(str(folder) in word for word in words) and "lab.bench" not in process.cmdline():
            found.append(process)
    return found


def test_a_short_run_answers_every_mention_and_its_parts_add_up(tmp_path: Path) -> None:
    with bench(tmp_path, "--json") as process:
        status = process.wait(400)

    assert status == 0, (tmp_path / "progress").read_text()
    measured = json.loads((tmp_path / "printed").read_text())
    figures = {figure["name"]: figure for figure in measured["figures"]}
    assert measured["failed"] == []
    assert "lifted" in measured["machine"]["FEISHU_CALLS_PER_SECOND"]
    for name in ("20 at a time", "costs", "10/s, model 0.3 s"):
        assert figures[f"{name}: unanswered"]["value"] == 0
    for name in ("a line where the bot has not spoken", "a mention, model 0.3 s"):
        parts = [figures[f"{name}: {part}"]["value"] for part in ("web", "worker", "Postgres")]
        assert figures[name]["value"] == pytest.approx(sum(parts), rel=0.1)
    assert figures["a mention, model 0.3 s"]["value"] > 1
    assert figures["10/s, model 0.3 s: overhead, p99"]["value"] > 0
    assert figures["10/s, model 0.3 s: cores used"]["value"] > 0
    assert figures["memory at rest, PSS"]["value"] > 50
    assert started_in(tmp_path) == []


def test_an_interrupt_ends_everything_that_was_started(tmp_path: Path) -> None:
    progress = tmp_path / "progress"
    with bench(tmp_path, "--seconds", "30") as process:
        eventually(lambda: "cost:" in progress.read_text(), within_s=180, what="the bot is asked")
        assert len(started_in(tmp_path)) > 4

        os.killpg(process.pid, signal.SIGINT)

        assert process.wait(120) == 130
    eventually(lambda: not started_in(tmp_path), what="no process is left")
