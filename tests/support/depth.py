"""Tests that run only with `scripts/test --deep`: the table in docs/testing.md is the one list.

A row names tests by a prefix of their ids, what the short run keeps of the same guarantee, and a
reason. A part in square brackets in the second column keeps the cases that contain it.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

TABLE = Path(__file__).parents[2] / "docs" / "testing.md"
NODEIDS = pytest.StashKey[list[str]]()  # of everything collected, deep tests too
ALL_COLLECTED = pytest.StashKey[bool]()
IS_DEEP = bool(os.environ.get("DEEP_TESTS"))
_ROW = re.compile(r"^\| `(tests/[^`]+)` \| (.+?) \| (.+?) \|$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Row:
    """Tests of the deep run alone."""

    prefix: str
    kept: tuple[str, ...]
    reason: str

    def names(self, nodeid: str) -> bool:
        """True if the test, or another case of it, is in this row."""
        rest = nodeid.removeprefix(self.prefix)
        return rest != nodeid and (not rest or rest[0] in ":[/")

    def keeps(self, nodeid: str) -> bool:
        """True if the short run keeps this case."""
        return any(part[1:-1] in _case(nodeid) for part in self.kept if part.startswith("["))

    @property
    def others(self) -> list[str]:
        """Tests of the short run that show the same guarantee."""
        return [part for part in self.kept if not part.startswith("[")]


def rows() -> list[Row]:
    """Returns the table."""
    found = _ROW.findall(TABLE.read_text(encoding="utf-8"))
    return [Row(tests, tuple(re.findall(r"`([^`]+)`", kept)), why) for tests, kept, why in found]


def deep_only(nodeids: Iterable[str]) -> set[str]:
    """Returns the ids of the tests that only the deep run includes."""
    table = rows()
    starts = tuple(row.prefix for row in table)
    some = [one for one in nodeids if one.startswith(starts)]
    return {one for one in some if any(row.names(one) and not row.keeps(one) for row in table)}


def out_of_date(nodeids: Iterable[str]) -> list[str]:
    """Returns the rows, and the cases they keep, that no collected test has."""
    ids, wrong = list(nodeids), []
    for row in rows():
        cases = [_case(one) for one in ids if row.names(one)]
        parts = [part for part in row.kept if part.startswith("[")]
        wrong += [] if cases else [row.prefix]
        wrong += [f"{row.prefix} {part}" for part in parts if not _has(cases, part)]
    return wrong


def _has(cases: Iterable[str], part: str) -> bool:
    return any(part[1:-1] in case for case in cases)


def count(name: str, *, short: int, deep: int) -> int:
    """Returns how many examples to try: as the variable says, or as the run is short or deep."""
    return int(os.environ.get(name) or (deep if IS_DEEP else short))


def dice() -> random.Random:
    """Returns what draws seeds: the same ones in every short run, new ones in a deep run."""
    return random.Random() if IS_DEEP else random.Random(0)


def _case(nodeid: str) -> str:
    return nodeid.partition("[")[2].removesuffix("]")
