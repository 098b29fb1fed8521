"""Ids and search words of notes."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from memory.tables.notes import note_id, registered_notes, search_terms
from tests.support.rows import every_row


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_the_same_parts_give_the_same_well_formed_id(parts: list[str]) -> None:
    assert note_id(*parts) == note_id(*parts)
    assert re.fullmatch(r"note_[a-z2-7]{10}", note_id(*parts))


def test_other_parts_and_no_parts_give_other_ids() -> None:
    made = {note_id("om_1", "ab", "c"), note_id("om_1", "a", "bc"), note_id(), note_id()}
    assert len(made) == 4


@every_row(
    ("query", "terms"),
    [
        ("the Pasta note", ["pasta"]),
        ("意大利面", ["意大", "大利", "利面"]),
        ("面 notes", ["面"]),
        ("fast-food, 2026", ["fast", "food", "2026"]),
        ("项目alpha的计划", ["alpha", "项目", "的计", "计划"]),
        ("", []),
        ("the note", []),
    ],
)
def test_a_query_becomes_words_and_pairs_of_characters(query: str, terms: list[str]) -> None:
    assert search_terms(query) == terms


@given(st.text(max_size=2000))
def test_any_query_gives_few_lower_case_terms(query: str) -> None:
    terms = search_terms(query)
    assert len(terms) <= 40
    assert all(terms)


def test_registry_rows_become_entries() -> None:
    row = {
        "id": "note_a", "title": "Pasta", "tags": ["x"], "ordinal": 1, "recency": None,
        "last_action": "listed", "last_used_at": None, "rank": 1,
    }  # fmt: skip
    [entry] = registered_notes([row])
    assert (entry.id, entry.tags, entry.recency) == ("note_a", ("x",), None)
    assert (entry.here, entry.shown) == (True, None), "an earlier release's function says neither"
    [entry] = registered_notes([{**row, "here": False, "shown": 3}])
    assert (entry.here, entry.shown) == (False, 3)
