"""A table of cases in one test says of every failing row which it is."""

from __future__ import annotations

import inspect

import pytest

from tests.support.rows import every_row


def test_every_failing_row_is_reported_and_the_others_are_tried() -> None:
    tried = []

    @every_row("number, even", [(1, False), (2, False), (3, True), (4, True)])
    def is_even(number: int, even: bool) -> None:
        tried.append(number)
        assert (number % 2 == 0) is even

    with pytest.raises(ExceptionGroup, match="2 of 4 rows failed") as failed:
        is_even()

    assert tried == [1, 2, 3, 4]
    notes = [one.__notes__ for one in failed.value.exceptions]
    assert notes == [["row: (2, False)"], ["row: (3, True)"]]


def test_pytests_own_failures_are_of_a_row_too() -> None:
    @every_row("number", [1, 2])
    def never(number: int) -> None:
        pytest.fail(f"not {number}")

    with pytest.raises(ExceptionGroup, match="2 of 2 rows failed"):
        never()


def test_two_tables_are_multiplied() -> None:
    tried = []

    @every_row("a", [1, 2])
    @every_row("b", [3, 4])
    def both(a: int, b: int) -> None:
        tried.append((a, b))

    both()
    assert tried == [(1, 3), (1, 4), (2, 3), (2, 4)]
    assert not inspect.signature(both).parameters


def test_an_empty_table_fails() -> None:
    @every_row("a", [])
    def nothing(a: int) -> None:
        raise AssertionError

    with pytest.raises(AssertionError, match="no row"):
        nothing()
