"""Every sentence of SECURITY.md has the tests behind it, or a reason why no test can show it."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

import pytest

from lab.doubles.processes import ROOT
from tests.support.security_sentences import SENTENCES

_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z“*`])")
_RULE = re.compile(r"[|\s-]+")


def sentences(text: str) -> Iterator[str]:
    """The sentences below the title: of a table of reasons those of its last column, of another
    table its rows."""
    for block in re.split(r"\n\s*\n", text.partition("\n## ")[2]):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        if lines and lines[0].startswith("|"):
            yield from _of_table(lines)
        else:
            for part in re.split(r"\n(?=- )", "\n".join(lines)):
                yield from filter(None, _END.split(" ".join(part.split())))


def _of_table(lines: list[str]) -> Iterator[str]:
    head, *rows = (line for line in lines if not _RULE.fullmatch(line))
    for row in rows:
        if head.startswith("| who |"):
            yield from _END.split(row.strip("| ").split(" | ")[-1])
        else:
            yield row.strip("| ")


@functools.cache
def written() -> tuple[str, ...]:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    return tuple(one for one in sentences(text) if not one.startswith("Report a weakness"))


def entries_of(sentence: str) -> list[str]:
    """The longest beginnings that fit."""
    fitting = [start for start in SENTENCES if sentence.startswith(start)]
    longest = max(map(len, fitting), default=0)
    return [start for start in fitting if len(start) == longest]


def test_every_sentence_has_its_tests_or_a_reason() -> None:
    assert [one for one in written() if not entries_of(one)] == []


def test_every_entry_is_of_a_sentence() -> None:
    used = {start for one in written() for start in entries_of(one)}
    assert SENTENCES.keys() - used == set()


@pytest.mark.parametrize("start", SENTENCES)
def test_the_tests_that_are_named_are_there(start: str) -> None:
    tests = SENTENCES[start]
    assert tests
    for test in () if isinstance(tests, str) else tests:
        module, _, name = test.partition("::")
        text = (ROOT / module).read_text(encoding="utf-8")
        assert re.search(rf"^\s*(?:async )?def {name}\(", text, re.MULTILINE), test


def test_a_sentence_without_an_entry_is_noticed() -> None:
    assert not entries_of("The bot never sleeps.")


def test_the_sentences_of_rows_and_paragraphs_are_told_apart() -> None:
    text = (
        "# T\n\n## A\n\nOne. Two\nlines.\n\n| who | may not | because |\n|---|---|---|\n"
        "| a | b | First. Then. |\n\n- **X.** Y\n- z\n"
    )
    assert [one for one in sentences(text) if one != "A"] == [
        *("One.", "Two lines.", "First.", "Then.", "- **X.** Y", "- z")
    ]
