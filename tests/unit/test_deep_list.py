"""docs/testing.md lists what only the deep run does: nothing that is gone, and every number."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import depth

ROOT = Path(__file__).parents[2]
COUNTS = re.compile(r'depth\.count\("(\w+)", short=(\d+), deep=(\d+)\)')
COUNTED = re.compile(r"^\| `(\w+)` \| `(tests/[^`]+)`[^|]* \| (\d+) \| (\d+) \|$", re.MULTILINE)


@pytest.mark.parametrize("row", depth.rows(), ids=lambda row: row.prefix)
def test_a_row_names_a_test_and_a_reason(row: depth.Row) -> None:
    for test in (row.prefix, *row.others):
        file, _, name = test.partition("::")
        assert (ROOT / file).is_file()
        assert f"def {name}" in (ROOT / file).read_text(encoding="utf-8")
    assert row.kept
    assert row.reason


def test_no_row_and_no_case_that_is_kept_is_out_of_date(
    request: pytest.FixtureRequest,
) -> None:
    if not request.config.stash[depth.ALL_COLLECTED]:
        pytest.skip("only a run of all tests can tell")
    assert depth.out_of_date(request.config.stash[depth.NODEIDS]) == []


def test_a_row_divides_its_tests() -> None:
    row = depth.Row("tests/a.py::test_b", ("[one]",), "")
    ids = [f"tests/a.py::test_b[{case}]" for case in ("one", "two")]
    assert [row.names(one) and not row.keeps(one) for one in ids] == [False, True]
    assert not row.names("tests/a.py::test_bc")


def test_every_number_of_examples_is_listed() -> None:
    used = {
        (variable, file.relative_to(ROOT).as_posix(), short, deep)
        for file in (ROOT / "tests").rglob("*.py")
        for variable, short, deep in COUNTS.findall(file.read_text(encoding="utf-8"))
    }
    assert set(COUNTED.findall(depth.TABLE.read_text(encoding="utf-8"))) == used
