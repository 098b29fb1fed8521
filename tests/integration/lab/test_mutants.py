"""Planted mutants of a small checkout are killed, and a harmless one survives."""

from __future__ import annotations

import json
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from lab.mutants.__main__ import run
from lab.mutants.records import Mutant, load, place

_ROOT = Path(__file__).parents[3]
_PRODUCT = '''
def is_late(seconds: float) -> bool:
    """Whether it took more than a minute."""
    return seconds > 60


class Person:
    def greets(self, name: str) -> str:
        return f"Hello {name}"
'''
_TESTS = """
import subprocess
import sys

from bot.lateness import Person, is_late


def test_after_a_minute_it_is_late():
    assert not is_late(60)
    assert is_late(61)


def test_another_process_greets():
    code = "from bot.lateness import Person; print(Person().greets('Ann'))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "Hello Ann\\n"


def test_endless():
    while not is_late(1000):
        pass
"""
_LATE = "test_after_a_minute_it_is_late"
_DAEMON = """
import subprocess
import sys

from bot.lateness import is_late


def test_what_a_daemon_does():
    sleeps = "import time; time.sleep(600)"
    begins = "from subprocess import *; import sys; Popen([sys.executable, '-c', *sys.argv[1:]])"
    again = [sys.executable, "-c", begins, sleeps, {mark!r}]
    subprocess.run(again, start_new_session=True, check=True)
    assert is_late(61)
"""


def _mutant(name: str, find: str, replace: str, *tests: str, function: str = "is_late") -> Mutant:
    covering = {"tests/test_lateness.py": list(tests or [_LATE])}
    return Mutant(name, "area", "bot/lateness.py", function, find, replace, tests=covering)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with one module and its tests, and the lab, the memory and the sandbox of ours."""
    root = tmp_path / "checkout"
    for folder in ("lab", "memory", "bot", "sql"):
        (root / folder).mkdir(parents=True)
    for folder in ("lab", "memory"):
        (root / folder).rmdir()
        (root / folder).symlink_to(_ROOT / folder)
    (root / "bot" / "lateness.py").write_text(_PRODUCT)
    (root / "tests" / "support").mkdir(parents=True)
    (root / "tests" / "test_lateness.py").write_text(_TESTS)
    (root / "tests" / "support" / "postgres.py").write_text(
        "def start_server():\n    return None\n"
    )
    (root / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
    return root


def test_each_mutant_has_its_outcome_and_the_checkout_stays_as_it_was(
    checkout: Path, tmp_path: Path
) -> None:
    mutants = [
        _mutant("boundary", "seconds > 60", "seconds >= 60"),
        _mutant("harmless", "return seconds > 60", "return 60 < seconds"),
        _mutant("moved", "return\n   seconds > 60", "return False"),
        _mutant("gone", "seconds > 61", "False"),
        _mutant(
            "subprocess", "Hello", "Bye", "test_another_process_greets", function="Person.greets"
        ),
        _mutant("endless", "seconds > 60", "False", "test_endless"),
        _mutant("without tests", "seconds > 60", "False", "test_that_was_removed"),
    ]
    results = tmp_path / "results.jsonl"

    outcomes = run(mutants, checkout, results, limit_s=5)

    assert "by" not in outcomes["control"], outcomes["control"]
    assert {one: row["outcome"] for one, row in outcomes.items()} == {
        "boundary": "killed",
        "harmless": "survived",
        "moved": "killed",
        "gone": "stale",
        "subprocess": "killed",
        "endless": "timed out",
        "without tests": "untested",
        "control": "survived",
    }
    assert outcomes["boundary"]["by"] == f"tests/test_lateness.py::{_LATE}"
    assert (checkout / "bot" / "lateness.py").read_text() == _PRODUCT
    assert [json.loads(line)["id"] for line in results.read_text().splitlines()] == list(outcomes)


def test_what_a_test_started_ends_with_its_mutant(checkout: Path, tmp_path: Path) -> None:
    mark = str(tmp_path / "daemon")
    (checkout / "tests" / "test_daemon.py").write_text(_DAEMON.format(mark=mark))
    mutant = Mutant(
        "daemon", "area", "bot/lateness.py", "is_late", "seconds > 60", "60 < seconds",
        tests={"tests/test_daemon.py": ["test_what_a_daemon_does"]},
    )  # fmt: skip

    outcomes = run([mutant], checkout, tmp_path / "results.jsonl", limit_s=20)

    assert outcomes["daemon"]["outcome"] == "survived"
    assert not [
        one for one in psutil.process_iter(["cmdline"]) if mark in (one.info["cmdline"] or ())
    ]


def test_a_snippet_is_found_in_the_file_to_which_its_function_moved(tmp_path: Path) -> None:
    (tmp_path / "bot").mkdir()
    (tmp_path / "bot" / "elsewhere.py").write_text(_PRODUCT)

    placed = place(_mutant("boundary", "seconds > 60", "False"), tmp_path)

    assert placed
    assert placed.path == "bot/elsewhere.py"
    assert "return False" in placed.text


def test_a_snippet_that_is_there_twice_is_stale(tmp_path: Path) -> None:
    (tmp_path / "bot").mkdir()
    twice = "def is_late(s):\n    s = s > 60\n    return s > 60\n"
    (tmp_path / "bot" / "lateness.py").write_text(twice)

    assert place(_mutant("boundary", "s > 60", "False"), tmp_path) is None


def test_a_sql_function_ends_where_the_next_statement_begins(tmp_path: Path) -> None:
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql" / "names.sql").write_text(
        "create or replace function public.one() returns int\nlanguage sql as $$ select 1 $$;\n"
        "create or replace function public.two() returns int\nlanguage sql as $$ select 1 $$;\n"
    )

    placed = place(Mutant("two", "area", "sql/names.sql", "two", "select 1", "select 2"), tmp_path)

    assert placed
    assert placed.text.count("select 1") == 1
    assert placed.text.rstrip().endswith("select 2 $$;")


def test_the_recorded_mutants_have_ids_of_their_own() -> None:
    ids = [one.id for one in load()]

    assert len(set(ids)) == len(ids) > 200
