"""The log's lines: whole, valid, and never a reason to stop."""

from __future__ import annotations

import fcntl
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from bot.process.log_lines import LogLines, shortened_line
from tests.support.patience import limit_s

WRITES = """
import sys
from bot.process import logs
import structlog
logs.configure_logs("INFO")
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
    short = shortened_line(line)
    assert len(short.encode()) <= select.PIPE_BUF
    assert json.loads(short).keys() == {*fields, "stack"}


def test_a_log_that_nobody_reads_stops_nothing() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    assert LogLines(writing).write("lost\n") == 5
    os.close(writing)
    assert LogLines(writing).write("lost\n") == 5


def test_a_reader_that_sleeps_stops_nobody_and_gets_what_comes_after_it_wakes() -> None:
    reading, writing = os.pipe()
    lines = LogLines(writing)
    began = time.monotonic()
    for number in range(5000):
        lines.write(json.dumps({"number": number, "more": "x" * 100}) + "\n")
    assert time.monotonic() - began < limit_s(5)

    with os.fdopen(reading, encoding="utf-8") as log:
        read = [json.loads(next(log))]
        while read[-1].get("number") != 4999:
            read.append(json.loads(next(log)))
    numbers = [line["number"] for line in read if "number" in line]
    assert numbers[0] == 0
    assert numbers == sorted(numbers)
    (told,) = [line for line in read if line.get("event") == "log.lines_lost"]
    assert told["lines"] == 5000 - len(numbers)
    os.close(writing)


def test_a_reader_that_falls_asleep_stops_none_of_several_processes() -> None:
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    command = [sys.executable, "-c", "from bot.process.log_lines import LogLines\n" + WRITES_ON]
    writers = [subprocess.Popen(command, stdout=writing, stdin=subprocess.PIPE) for _ in range(4)]
    for _ in range(20_000):
        os.read(reading, 4096)
    for writer in writers:
        writer.stdin.close()  # type: ignore[union-attr]
    try:
        assert [writer.wait(60) for writer in writers] == [0] * 4
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
        os.close(reading)
        os.close(writing)


WRITES_ON = """
import select, sys
lines = LogLines()
while not select.select([sys.stdin], [], [], 0)[0]:
    lines.write("x" * 4000 + "\\n")
"""


def test_a_socket_that_nobody_reads_stops_nobody() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        lines = LogLines(ours.fileno())
        writer = threading.Thread(
            target=lambda: [lines.write("x" * 4000 + "\n") for _ in range(500)], daemon=True
        )
        writer.start()
        writer.join(20)
        stuck = writer.is_alive()
        theirs.close()
        until_nothing_waits()
    assert not stuck


def test_a_child_does_not_write_what_waits_in_its_parent() -> None:
    said = run_with_a_sleeping_reader(FORKS)

    assert [said.count(f'"{name}"') for name in ("kept", "child", "parent")] == [1, 1, 1]


def test_what_waits_is_written_before_the_process_ends() -> None:
    assert run_with_a_sleeping_reader(ENDS).count('"last"') == 1


def until_nothing_waits() -> None:
    for thread in threading.enumerate():
        if thread.name == "log":
            thread.join(20)


FILLS = """
import fcntl, os
from bot.process.log_lines import write_event as say
fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 4096)
say("first", text="x" * 3500)
"""
FORKS = f"""{FILLS}
say("kept", text="x" * 3500)
child = os.fork()
if not child:
    say("child", text="x" * 3500)
    raise SystemExit
say("parent")
os.write(2, b"full")
os.waitpid(child, 0)
"""
ENDS = f"""{FILLS}
say("last", text="x" * 3500)
os.write(2, b"full")
"""


def run_with_a_sleeping_reader(code: str) -> str:
    """What it wrote; it was not read before the program said that the pipe is full."""
    running = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with running:
        assert running.stdout is not None
        assert running.stderr is not None
        said = running.stderr.read(4)
        assert said == b"full", said + running.stderr.read()
        return running.stdout.read().decode()


def test_on_a_terminal_lines_are_for_people_and_elsewhere_for_machines() -> None:
    line = json.dumps({"event": "said", "number": 1}) + "\n"
    master, terminal = os.openpty()
    reading, writing = os.pipe()
    for descriptor in (terminal, writing):
        LogLines(descriptor).write(line)
        LogLines(descriptor, "json").write(line)
        LogLines(descriptor, "text").write(line)

    people, machine = "said  number=1", line.strip()
    assert read_lines(master, 3) == [people, machine, people]
    assert read_lines(reading, 3) == [machine, machine, people]
    for descriptor in (master, terminal, reading, writing):
        os.close(descriptor)


def read_lines(descriptor: int, count: int) -> list[str]:
    """A terminal passes on what is written to it a moment later, and a line at a time."""
    read = b""
    while read.count(b"\n") < count:
        read += os.read(descriptor, 4096)
    return read.decode().splitlines()
