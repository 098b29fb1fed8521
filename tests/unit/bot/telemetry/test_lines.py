"""The log's lines: whole, valid, and never a reason to stop."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from bot.telemetry.lines import Lines, shortened

WRITES = """
import sys
from bot.telemetry import logs
import structlog
logs.configure("INFO")
for number in range(200):
    structlog.get_logger().info("said", by=sys.argv[1], number=number, stack="字x" * 2000)
"""


def test_lines_of_several_processes_are_never_mixed(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITES, str(number)], stdout=writing)
        for number in range(3)
    ]
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as log:
        lines = [json.loads(line) for line in log]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert len(lines) == 600
    assert {line["event"] for line in lines} == {"said"}


@given(st.dictionaries(st.text(max_size=9), st.text() | st.integers(), max_size=6), st.text())
def test_a_shortened_line_is_still_a_line_of_json(fields: dict[str, object], text: str) -> None:
    line = json.dumps({**fields, "stack": text * 900}, ensure_ascii=False) + "\n"
    short = shortened(line)
    assert len(short.encode()) <= select.PIPE_BUF
    assert json.loads(short).keys() == {*fields, "stack"}


def test_a_log_that_nobody_reads_stops_nothing() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    assert Lines(writing).write("lost\n") == 5
    os.close(writing)
    assert Lines(writing).write("lost\n") == 5


def test_a_reader_that_sleeps_stops_nobody_and_gets_what_comes_after_it_wakes() -> None:
    reading, writing = os.pipe()
    lines = Lines(writing)
    began = time.monotonic()
    for number in range(5000):
        lines.write(f"{number} {'x' * 100}\n")

    assert time.monotonic() - began < 5
    assert os.read(reading, 1_000_000).startswith(b"0 x")
    lines.write("awake\n")
    assert os.read(reading, 1_000_000).endswith(b"awake\n")
    os.close(reading)
    os.close(writing)
