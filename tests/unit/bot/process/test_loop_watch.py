"""What is said of a loop that something blocks."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bot.process.metrics import LoopBlock, LoopWatch, blocks_of_today, code_place
from memory.text import one_line


class Watched:
    def __init__(self, folder: Path | None = None) -> None:
        self.now = 100.0
        self.lines: list[dict[str, Any]] = []
        self.watch = LoopWatch(folder, clock=lambda: self.now, write=self._write)

    def _write(self, event: str, *, level: str, **fields: Any) -> None:
        assert (event, level) == ("loop.blocked", "warning")
        self.lines.append(fields)

    def works(self, seconds: float) -> None:
        self.watch.busy()
        self.now += seconds
        self.watch.look(sys._getframe())
        self.watch.back()
        self.watch.report()


@pytest.fixture
def loop(tmp_path: Path) -> Watched:
    return Watched(tmp_path / "run")


def test_a_block_of_over_half_a_second_is_said_with_its_place(loop: Watched) -> None:
    loop.works(0.49)
    assert not loop.lines
    loop.works(0.75)
    assert [line["seconds"] for line in loop.lines] == [0.75]
    assert "tests.unit.bot.process.test_loop_watch.works" in loop.lines[0]["where"]


def test_many_blocks_make_one_line_in_ten_seconds_with_the_longest(loop: Watched) -> None:
    for seconds in (1.0, 1.2, 3.0, 1.1, 4.0, 0.8):
        loop.works(seconds)
    assert [(line["seconds"], line["blocks"]) for line in loop.lines] == [(1.0, 1), (4.0, 5)]


def test_waiting_is_no_block(loop: Watched) -> None:
    loop.works(0.1)
    loop.now += 60
    loop.watch.look(sys._getframe())
    loop.works(0.1)
    assert not loop.lines


def test_the_doctor_finds_the_blocks_of_a_day(loop: Watched, tmp_path: Path) -> None:
    loop.works(2.0)
    now = time.time()
    [found] = blocks_of_today(tmp_path / "run", now)
    assert (found.seconds, found.is_ours) == (2.0, False)
    assert blocks_of_today(tmp_path / "run", now + 25 * 3600) == []
    assert not list((tmp_path / "run").iterdir()), "old notes are removed"


def test_a_note_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "blocked-1").write_text("{")
    (tmp_path / "blocked-2").write_text(json.dumps({"at": 1}))
    assert blocks_of_today(tmp_path, time.time()) == []


def test_only_our_functions_are_named() -> None:
    frames: list[Any] = []
    re.sub("a", lambda match: frames.append(sys._getframe()) or one_line(match[0]), "a")
    assert code_place(frames[0]).startswith("tests.unit.bot.process.test_loop_watch.")
    assert "re." not in code_place(frames[0]).split(" < ")[0].removeprefix("tests.")


def test_a_pattern_that_holds_the_interpreter_is_named_where_it_was_called() -> None:
    lines: list[dict[str, Any]] = []
    said = asyncio.Event()

    def write(_event: str, **fields: Any) -> None:
        lines.append(fields)
        with contextlib.suppress(RuntimeError):  # the watch outlives the loop of this test
            loop.call_soon_threadsafe(said.set)

    loop = asyncio.new_event_loop()
    watch = LoopWatch(write=write)
    slow = re.compile(r"(?:\s+)+x")

    def examine(text: str) -> None:
        slow.match(text)

    async def work() -> None:
        watch.follow(loop)
        await asyncio.sleep(0.3)
        spaces, took = 16, 0.0
        while took < 1.0:
            started = time.monotonic()
            examine(" " * spaces)
            took, spaces = time.monotonic() - started, spaces + 2
            await asyncio.sleep(0.01)
        await asyncio.wait_for(said.wait(), 10)

    loop.run_until_complete(work())
    loop.close()
    assert "test_loop_watch.examine" in lines[0]["where"] or "work" in lines[0]["where"]
    assert lines[0]["seconds"] > 0.5


def test_a_block_tells_code_from_a_busy_machine() -> None:
    assert LoopBlock(0, 2.0, 1.9, "").is_ours
    assert not LoopBlock(0, 2.0, 0.1, "").is_ours
