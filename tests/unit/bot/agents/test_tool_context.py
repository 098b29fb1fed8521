"""The block that earlier tool calls leave in what a model is given."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bot.agents.prompts.tool_context import (
    HEADING,
    enrich,
    exchanges,
    references,
    registry_table,
)
from memory.tables.notes import RegisteredNote
from tests.support.rows import every_row


def _call(result: Any, *, ok: bool = True, **arguments: Any) -> dict[str, Any]:
    return {"name": "create_note", "arguments": arguments, "result": result, "ok": ok, "ms": 3}


def test_a_message_without_tool_calls_is_the_very_same() -> None:
    content = "I created **it**."
    assert enrich(content, ()) is content


def test_a_message_with_calls_tells_tool_arguments_result_and_references() -> None:
    told = enrich(
        "Done.",
        [_call('Successfully created note "Pasta" (ID: note_abc) with tags: x.', title="Pasta")],
    )

    assert told == (
        f"Done.\n\n{HEADING}\n"
        "1. Tool: create_note (ok)\n"
        '   Arguments: {"title": "Pasta"}\n'
        '   Result: Successfully created note "Pasta" (ID: note_abc) with tags: x.\n'
        "   References: note_abc"
    )


def test_a_failed_call_is_told_as_failed() -> None:
    told = enrich("No.", [_call("Error: no note has this id.", ok=False)])
    assert "create_note (failed)" in told
    assert "References" not in told


@every_row(
    ("result", "ids"),
    [
        ("(ID: note_1) and (ID:note_2), (ID: note_1)", ["note_1", "note_2"]),
        ('{"id": "a-1", "items": [{"id":"b 2"}, {"id": "c3"}]}', ["a-1", "c3"]),
        ({"id": "x9", "nested": [{"id": "y"}]}, ["x9", "y"]),
        ([{"id": 5}], []),
        ("", []),
        (None, []),
    ],
)
def test_ids_are_picked_out_of_texts_and_json(result: Any, ids: list[str]) -> None:
    assert references(result) == ids


def test_a_long_result_is_cut_but_its_ids_are_kept() -> None:
    result = "x" * 5000 + " (ID: note_end)"
    told = enrich("Done.", [_call(result)])

    assert len(told) < 1500
    assert "… (cut)" in told
    assert told.endswith("References: note_end")


def test_of_very_many_calls_the_rest_still_gives_its_ids() -> None:
    told = enrich("Done.", [_call(f"(ID: note_{i})") for i in range(30)])

    assert "10 more calls." in told
    assert "note_29" in told


@given(st.text(), st.text(max_size=300))
def test_results_cannot_forge_lines_of_the_block(content: str, result: str) -> None:
    told = enrich(content, [_call(result)])
    block = told[len(content) :].split("\n")
    assert len(block) in (5, 6)


def test_a_call_is_a_pair_with_an_id_of_its_own_that_never_changes() -> None:
    calls = [_call("made (ID: note_a)", title="Pasta"), _call("no such note", ok=False), _call(5)]
    first, failed, number = exchanges(7, calls)

    assert (first.name, first.arguments) == ("create_note", '{"title": "Pasta"}')
    assert first.result == "made (ID: note_a)\nReferences: note_a"
    assert failed.result == "Error: no such note"
    assert (number.arguments, number.result) == ("{}", "5")
    assert exchanges(7, calls) == (first, failed, number)
    ids = [one.id for message in (7, 8, 71) for one in exchanges(message, calls)]
    assert len(set(ids)) == 9
    assert all(re.fullmatch("[a-z0-9]{9}", id) for id in ids)


def test_a_long_call_is_cut_to_arguments_that_are_still_json() -> None:
    [pair] = exchanges(1, [_call("x" * 9000 + " (ID: note_end)", title="Pasta", body="y" * 9000)])

    assert json.loads(pair.arguments).keys() == {"title", "body"}
    assert len(pair.arguments) < 1000
    assert len(pair.result) < 2100
    assert pair.result.endswith("References: note_end")


def test_the_registry_is_a_short_table_without_line_breaks_in_cells() -> None:
    entries = [
        RegisteredNote("note_a", "Pizza | party\nx", ("it", "d"), 1, 2, "created"),
        RegisteredNote("note_b", "Pasta", (), 2, 1, "updated"),
        RegisteredNote("note_c", "Old", (), 3, None, "listed"),
    ]
    assert registry_table(entries).splitlines()[2:] == [
        "| 1 | Pizza / party x | note_a | it, d | created | 2 |",
        "| 2 | Pasta | note_b |  | updated | 1 |",
        "| 3 | Old | note_c |  | listed | - |",
    ]


def test_notes_of_other_threads_stand_apart_and_the_list_shown_last_on_top() -> None:
    entries = [
        RegisteredNote("note_a", "Pizza", (), 1, 1, "created", shown=2),
        RegisteredNote("note_c", "Old", (), 2, None, "listed", here=False, shown=1),
    ]
    assert registry_table(entries).splitlines() == [
        "The list of notes that a card showed last, in its order: 1. note_c, 2. note_a",
        "| no. | title | ID | tags | last action | recency (1 = used last) |",
        "|---|---|---|---|---|---|",
        "| 1 | Pizza | note_a |  | created | 1 |",
        "Created in other threads and only seen here:",
        "| 2 | Old | note_c |  | listed | - |",
    ]


def test_without_notes_there_is_no_table() -> None:
    assert registry_table([]) == ""
