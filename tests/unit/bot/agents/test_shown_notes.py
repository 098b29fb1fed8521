"""Which notes an answer shows as a list: the order in which “the first note” counts."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bot.agents.prompts.tool_context import named_notes, with_shown
from tests.support.rows import every_row

FOUND = """3 notes, oldest first:
1. "Pasta" (ID: note_aaaa), tags: none
2. "Pasta sauce" (ID: note_bbbb), tags: x, shared by another person
3. "Say "hi"" (ID: note_cccc), tags: none"""


def _call(name: str = "list_notes", result: str = FOUND, *, ok: bool = True) -> dict[str, Any]:
    return {"name": name, "arguments": {}, "result": result, "ok": ok, "ms": 1}


def _shown(answer: str, *calls: dict[str, Any]) -> list[Any]:
    return [call.get("shown") for call in with_shown(calls or [_call()], answer)]


def test_notes_are_read_from_a_result_whatever_their_title() -> None:
    assert named_notes(FOUND) == [
        ("Pasta", "note_aaaa"),
        ("Pasta sauce", "note_bbbb"),
        ('Say "hi"', "note_cccc"),
    ]


@every_row(
    ("answer", "shown"),
    [
        ("1. Pasta\n2. Pasta sauce", ["note_aaaa", "note_bbbb"]),
        ("- **pasta sauce**\n- Pasta", ["note_bbbb", "note_aaaa"]),
        ('Say "hi", Pasta', ["note_cccc", "note_aaaa"]),
        ("There are three of them.", None),
    ],
)
def test_the_order_is_that_of_the_titles_in_the_answer(
    answer: str, shown: list[str] | None
) -> None:
    assert _shown(answer) == [shown]


def test_of_notes_with_the_same_title_each_is_shown_once() -> None:
    result = '1. "A" (ID: note_aaaa)\n2. "A" (ID: note_bbbb)'
    assert _shown("A, A, A", _call(result=result)) == [["note_aaaa", "note_bbbb"]]


def test_only_a_list_that_was_told_counts() -> None:
    searched = _call("search_notes")
    assert _shown("Pasta", _call(), searched) == [None, ["note_aaaa"]]
    assert _shown("Pasta", searched, _call("update_note", "done")) == [None, None]
    assert _shown("Pasta", searched, _call("recall", "x")) == [["note_aaaa"], None]
    assert _shown("Pasta", _call(ok=False)) == [None]
    assert with_shown((), "Pasta") == ()


@given(st.text(), st.text())
def test_any_result_and_answer_are_read(result: str, answer: str) -> None:
    (call,) = with_shown([_call(result=result)], answer)
    assert {key: call[key] for key in _call()} == _call(result=result)
