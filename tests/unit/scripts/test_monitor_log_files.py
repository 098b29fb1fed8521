"""Log files as they grow, are rotated and cut back."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from scripts.operating.logs import LogFile, StandardInput


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bot.log"


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def test_new_lines_come_once(path: Path) -> None:
    _append(path, "one\ntwo\n")
    log = LogFile(path)

    assert log.lines() == ["one", "two"]
    assert log.lines() == []
    _append(path, "three\n")
    assert log.lines() == ["three"]
    log.close()


def test_half_a_line_waits_for_its_end(path: Path) -> None:
    _append(path, "one\ntw")
    log = LogFile(path)

    assert log.lines() == ["one"]
    _append(path, "o\n")
    assert log.lines() == ["two"]
    log.close()


def test_a_rotated_file_is_read_to_its_end_and_the_new_one_from_its_beginning(path: Path) -> None:
    _append(path, "one\n")
    log = LogFile(path)
    assert log.lines() == ["one"]
    _append(path, "last\nhalf")
    path.rename(path.with_suffix(".1"))
    _append(path, "first\n")

    assert log.lines() == ["last", "half", "first"]
    log.close()


def test_between_two_files_the_old_one_is_still_read(path: Path) -> None:
    _append(path, "one\n")
    log = LogFile(path)
    assert log.lines() == ["one"]
    rotated = path.with_suffix(".1")
    path.rename(rotated)
    _append(rotated, "late\n")

    assert log.lines() == ["late"]
    _append(path, "new\n")
    assert log.lines() == ["new"]
    log.close()


def test_a_file_that_was_cut_back_is_read_from_its_beginning(path: Path) -> None:
    _append(path, "one\ntwo\nthr")
    log = LogFile(path)
    assert log.lines() == ["one", "two"]
    path.write_text("four\n", encoding="utf-8")

    assert log.lines() == ["four"]
    log.close()


def test_a_file_may_come_later(path: Path) -> None:
    log = LogFile(path)
    assert log.lines() == []
    _append(path, "one\n")

    assert log.lines() == ["one"]
    log.close()


def test_bytes_that_are_no_text_do_not_stop_it(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\nfine\n")
    log = LogFile(path)

    assert log.lines()[1] == "fine"
    log.close()


def test_a_long_file_is_read_whole(path: Path) -> None:
    path.write_text("".join(f"line {n} {'x' * 100}\n" for n in range(30_000)), encoding="utf-8")
    log = LogFile(path)

    assert len(log.lines()) == 30_000
    log.close()


def test_standard_input_is_read_to_its_end() -> None:
    source = StandardInput(io.StringIO("one\ntwo\n"))

    source.wait()

    assert source.ended
    assert source.lines() == ["one\n", "two\n"]
    source.close()
