"""Which databases count the baseline as applied."""

from __future__ import annotations

import pytest

from memory import baseline

LAST = {"0451_turns_by_number.sql", "backfills/0421_turn_terms_gone.sql"}
BEFORE = {"procrastinate", "0001_roles_and_claims.sql", "functions 0123"}
AFTER = {"0460_topic_groups.sql", "backfills/0471_sources.batches.sql"}


def test_the_last_files_before_it_count_as_the_baseline() -> None:
    assert baseline.counted(BEFORE | LAST) == BEFORE | LAST | {baseline.NAME}
    assert baseline.unfinished(BEFORE | LAST) == ""


@pytest.mark.parametrize("lacking", sorted(LAST))
def test_where_one_of_them_is_missing_it_is_named(lacking: str) -> None:
    assert baseline.NAME not in baseline.counted(BEFORE | LAST - {lacking})
    assert f"it lacks {lacking}" in baseline.unfinished(BEFORE | LAST - {lacking})


@pytest.mark.parametrize("recorded", [set(), {baseline.NAME}, {baseline.NAME} | AFTER])
def test_a_blank_database_and_one_that_has_it_are_not_unfinished(recorded: set[str]) -> None:
    assert baseline.counted(recorded) == recorded
    assert baseline.unfinished(recorded) == ""


def test_what_tells_versions_apart_is_the_baseline_and_what_came_since() -> None:
    assert baseline.since(BEFORE | LAST | AFTER | {baseline.NAME}) == AFTER | {baseline.NAME}
