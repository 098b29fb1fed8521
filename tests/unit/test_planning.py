"""How a run divides its tests among processes."""

from __future__ import annotations

from tests.support import durations
from tests.support.rows import every_row


def test_shares_take_equal_time_and_begin_with_the_heaviest_module() -> None:
    ids = [f"tests/{module}.py::test_{n}" for module in "abcd" for n in range(3)]
    seconds = {"tests/a.py": 1.0, "tests/b.py": 9.0, "tests/c.py": 6.0, "tests/d.py": 4.0}
    assert durations.shares(ids, 2, seconds) == [[3, 4, 5, 0, 1, 2], [6, 7, 8, 9, 10, 11]]


@every_row("workers", [1, 3, 7])
def test_each_test_is_in_one_share(workers: int) -> None:
    ids = [f"tests/{n % 5}.py::test_{n}" for n in range(40)]
    parts = durations.shares(ids, workers, {"tests/3.py": 2.0})
    assert len(parts) == workers
    assert sorted(index for part in parts for index in part) == list(range(40))
