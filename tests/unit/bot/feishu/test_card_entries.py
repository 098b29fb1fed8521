"""A list in a card: its paragraphs stand in elements of their own, and read back as one text."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bot.feishu.cards import Button, CheckField, answer_card, card_content
from bot.feishu.models import RawMessage, shown_text
from sandbox.cards.card_check import check_card
from sandbox.cards.forms import tagged
from sandbox.world.clicks import submitted
from tests.support.documented_cards import faults
from tests.support.rows import every_row

TURN = "a0123456789abcdef012"
LIST = "Kept\n\n1. tea\nsince May\n\n2. sugar\nsince June\n\nPage 1 of 2"
CORRECT, DELETE = Button("Correct", {"b": "1"}, entry=3), Button("Delete", {"b": "2"}, entry=3)
OTHER, NEXT = Button("Delete", {"b": "3"}, entry=2), Button("Next page", {"b": "4"}, entry=1)
BELOW = Button("Done", {"b": "5"})


def drawn(markdown: str, *buttons: Button) -> dict[str, Any]:
    return answer_card(markdown, element_id=TURN, buttons=buttons)


def read(card: dict[str, Any], element_id: str = "") -> str | None:
    empty: dict[str, Any] = {one.name: "" for one in fields(RawMessage)}
    content = card_content(card)
    message = RawMessage(**{**empty, "message_type": "interactive", "content": content})
    return shown_text(message, element_id)


def rows(card: dict[str, Any]) -> list[tuple[list[str], list[str]]]:
    """The texts of each entry, and the labels of the buttons beside it."""
    return [
        (
            [one["content"] for one in words["elements"]],
            [one["text"]["content"] for one in pressed["elements"]],
        )
        for element in card["body"]["elements"]
        if element["tag"] == "column_set"
        for words, pressed in [element["columns"]]
    ]


def test_each_entry_stands_beside_its_checkbox_and_reads_back_as_text() -> None:
    checks = tuple(CheckField(f"n{n}", "Delete", n > 1, n) for n in (3, 2, 1))
    card = drawn(LIST, Button("Delete", {"b": "1"}, fields=checks))

    check_card(card, knows_person=bool, knows_image=bool)
    assert faults(card) == set()
    assert submitted(card, "submit_1") == {"n3": True, "n2": True, "n1": False}
    columns = [one["columns"] for one in tagged(card) if one["tag"] == "column_set"]
    texts = [words["elements"][0]["content"] for _, words in columns]
    assert texts == ["1. tea", "2. sugar", "Page 1 of 2"]
    assert read(card) == LIST


def test_each_entry_stands_beside_its_buttons() -> None:
    card = drawn(LIST, CORRECT, DELETE, OTHER, NEXT, BELOW)

    assert rows(card) == [
        (["1. tea", "since May"], ["Correct", "Delete"]),
        (["2. sugar", "since June"], ["Delete"]),
        (["Page 1 of 2"], ["Next page"]),
    ]
    first, *_, last = card["body"]["elements"]
    assert (first["content"], last["text"]["content"]) == ("Kept", "Done")


def test_an_entry_without_buttons_has_the_whole_width() -> None:
    card = drawn(LIST, CORRECT)

    assert rows(card) == [(["1. tea", "since May"], ["Correct"])]
    assert read(card) == LIST


def test_the_platform_and_its_pages_allow_it() -> None:
    card = drawn(LIST, CORRECT, DELETE, OTHER, NEXT, BELOW)

    assert faults(card) == set()
    check_card(card, knows_person=bool, knows_image=bool)


@every_row("text", ["One sentence.", "1\n\n2\n\n3"])
def test_where_there_are_too_few_paragraphs_all_buttons_stand_below(text: str) -> None:
    card = drawn(text, CORRECT, DELETE, NEXT)
    tags = [one["tag"] for one in card["body"]["elements"]]

    assert tags == ["markdown", "button", "button", "button"]
    assert read(card) == text


@given(
    st.text(alphabet=st.sampled_from("ab \n#-`。"), max_size=60),
    st.lists(st.integers(0, 7), max_size=5),
)
def test_the_text_reads_back_as_it_was_given(markdown: str, entries: list[int]) -> None:
    card = drawn(markdown, *(Button("x", {"b": str(one)}, entry=one) for one in entries))

    assert read(card) == markdown
    assert read(card, TURN) == markdown
    assert read(card, "a" * 20) is None
    assert json.dumps(card).count('"tag": "button"') == len(entries)
