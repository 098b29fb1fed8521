"""The stand-in platform takes the card attributes that Feishu documents, and no others."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from bot.feishu.cards import Button, CardFoot, SelectField, answer_card, streaming_card
from sandbox.cards import card_schema as schema
from tests.support.documented_cards import COMPONENTS, DOCUMENTED, faults

TAKEN = {**schema.COMPONENTS, "column": schema.COLUMN}


def test_both_know_the_same_components():
    assert set(TAKEN) == set(COMPONENTS)


@pytest.mark.parametrize("tag", sorted(COMPONENTS))
def test_both_know_the_same_attributes(tag: str):
    assert set(TAKEN[tag]) == set(COMPONENTS[tag]["properties"])
    for name, documented in COMPONENTS[tag].get("parts", {}).items():
        if isinstance(taken := TAKEN[tag][name], dict):
            assert set(taken) == set(documented)


def test_both_know_the_same_structure_texts_icons_and_behaviors():
    assert set(schema.CARD) == set(DOCUMENTED["card"]["properties"])
    for way, documented in DOCUMENTED["card"]["parts"].items():
        part: Any = schema.CARD
        for name in way.split("."):
            part = part[name]
        assert set(part) == set(documented), way
    for tag in DOCUMENTED["texts"]["tags"]:
        assert set(schema.TEXTS[tag]) == set(DOCUMENTED["texts"]["properties"])
    icons = {tag: known for tag, known in DOCUMENTED["icons"].items() if tag != "note"}
    assert {tag: set(known) for tag, known in schema.ICONS.items()} == {
        tag: set(known) for tag, known in icons.items()
    }
    assert {kind: set(known) for kind, known in schema.BEHAVIOR_TYPES.items()} == {
        kind: set(known) for kind, known in DOCUMENTED["behaviors"].items()
    }


def whole_card() -> dict[str, Any]:
    """A card with all that the bot's cards may have."""
    press = Button("Again", {"id": "1"}, disabled=True)
    listed = Button("Delete", {"id": "3"}, entry=1)
    form = Button("Save", {"id": "2"}, fields=(SelectField("mode", "Mode", "a", (("a", "A"),)),))
    return answer_card(
        "# Words\n\nan entry\nwith a line below",
        buttons=(press, form, listed),
        note="kept",
        asked_text="why?",
        foot=CardFoot("12 s", ("recalled",), (press,)),
    )


def test_a_card_with_everything_the_bot_uses_is_as_documented():
    assert faults(whole_card()) == set()


def test_so_is_a_card_that_is_being_written():
    stop = Button("Stop", {"id": "1"})
    assert faults(streaming_card("Wor", element_id="answer", stage="3 s", stop=stop)) == set()


def test_what_the_pages_do_not_know_is_found():
    def changed(**more: Any) -> set[str]:
        card = copy.deepcopy(whole_card())
        card["body"]["elements"].append({"tag": "hr", **more})
        return faults(card)

    assert changed(colour="red") == {"hr: colour"}
    assert changed(element_id="1st") == {"element_id '1st'"}
    assert changed(element_id="answer") == {"element_id 'answer'"}
    assert changed(tag="action") == {"unknown tag 'action'"}
    within = {"tag": "collapsible_panel", "elements": [{"tag": "form", "elements": []}]}
    assert any("form" in one for one in changed(**within))
    assert changed(margin="0" * 31_000) == {"the card is too large"}
