"""Every command that a document names is understood: the script, its subcommand and its options."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator

import pytest

from lab.doubles.processes import ROOT
from tests.support.forking import run_module

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_NAMED = re.compile(r"(?<![\w/])scripts/(\w+)((?: +[^\s`|#;]+)*)")
_SHELL = ("start", "test", "lock")


def named() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Scripts in code, each with the words behind its name."""
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        spans = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))
        for code in [line for block in blocks for line in block.splitlines()] + spans:
            for name, rest in _NAMED.findall(code.split("   ")[0].replace("\\", "")):
                yield name, tuple(rest.split())


@functools.cache
def help_of(name: str, *subcommand: str) -> str:
    if name in _SHELL or name == "corpus":
        return (ROOT / "scripts" / name).read_text(encoding="utf-8")
    package = "lab" if (ROOT / "lab" / name).is_dir() else "scripts"
    done = run_module(f"{package}.{name}", *subcommand, "--help", env=os.environ)
    assert done.returncode == 0, done.stderr
    return done.stdout


NAMED = sorted({(name, words) for name, words in named() if words})


@pytest.mark.parametrize("script", sorted({name for name, _ in NAMED}))
def test_documents_name_commands_that_the_script_understands(script: str) -> None:
    commands = [words for name, words in NAMED if name == script]
    known = re.findall(r"^ {4}([a-z][a-z-]+)(?: |$)", help_of(script), re.MULTILINE)
    for words in commands:
        subcommand = [one for one in words[:1] if one in known]
        if words and known and re.fullmatch(r"[a-z][a-z-]+", words[0]) and script != "bot":
            assert subcommand, f"{script} {words[0]}"
        text = help_of(script, *(subcommand if script != "bot" else words[:1]))
        for option in (one for one in words if one.startswith("--") and one != "--help"):
            assert re.search(rf"{re.escape(option.split('=')[0])}\b", text), (script, words)
