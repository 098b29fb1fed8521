"""One command with everything below it: what `--help` lists, what is run, what is no command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lab.doubles.processes import ROOT
from scripts import bot
from tests.support.rows import every_row

NAMES = [command.name for command in bot.commands()]


def test_every_script_is_listed_with_a_sentence_and_the_old_names_stay() -> None:
    links = {one.name for one in (ROOT / "scripts").iterdir() if one.is_symlink()}
    of_the_lab = {"bench", "chaos", "evaluate", "pictures"}

    assert of_the_lab <= links
    assert all((ROOT / "lab" / name / "__main__.py").exists() for name in of_the_lab)
    assert {name.replace("_", "-") for name in links - of_the_lab - {"bot"}} <= set(NAMES)
    assert {"check_memory", "memory", "decisions", "monitor", "migrate"} <= links
    assert {"start", "sandbox", "doctor", "setup"} <= set(NAMES)
    assert not {"bot", "installed"} & set(NAMES)
    for command in bot.commands():
        assert command.summary.endswith("."), command


def test_help_names_everything_within_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert bot.main(["--help"]) == 0
    shown = capsys.readouterr().out

    assert all(f"\n  {name} " in shown for name in NAMES)
    assert max(map(len, shown.splitlines())) <= 80


@every_row(
    ("given", "found"),
    [
        ("check-memory", ["check-memory"]),
        ("check_memory", ["check-memory"]),
        ("time", ["timers"]),
        ("memory", ["memory"]),
        ("m", ["memory", "migrate", "monitor"]),
        ("nothing", []),
    ],
)
def test_a_name_may_be_cut_as_long_as_it_is_clear(given: str, found: list[str]) -> None:
    assert [command.name for command in bot.matching(given, bot.commands())] == found


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [(["docter"], "Was doctor meant?"), (["m"], "is cut too short: memory, migrate, monitor")],
)
def test_what_is_no_command_ends_with_status_2(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bot.main(arguments) == 2
    assert sentence in capsys.readouterr().err
    assert bot.main([]) == 2


def test_options_and_status_are_those_of_the_script(tmp_path: Path) -> None:
    def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "scripts.bot", *arguments],
            cwd=ROOT, capture_output=True, text=True, timeout=180, check=False,
        )  # fmt: skip

    helped, wrong = ran("doctor", "--help"), ran("monitor")
    assert (helped.returncode, "usage: doctor" in helped.stdout) == (0, True)
    assert (wrong.returncode, "nothing to look at" in wrong.stderr) == (2, True)
