"""Card JSON 2.0 as Feishu documents it."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.feishu.cards import (
    Button,
    CardFoot,
    answer_card,
    card_content,
    closing_actions,
    entity_content,
    reply_uuid,
    streaming_card,
    text_content,
)
from bot.feishu.markup import at_tag
from sandbox.cards.card_parts import apply_actions
from sandbox.world.cardkit import merge_settings
from tests.support.cards import card_bytes

DATA = Path(__file__).parents[3] / "data" / "feishu"


def fixture(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text())


def element(card: dict[str, Any], tag: str) -> dict[str, Any]:
    return next(item for item in card["body"]["elements"] if item["tag"] == tag)


def test_the_answer_is_the_one_markdown_element_and_is_not_changed():
    markdown = "Hi <at id=ou_x></at>, **done** & `x`"
    card = answer_card(markdown, buttons=[Button("More", {"id": "1"})], note="**n**")
    texts = [item for item in card["body"]["elements"] if item["tag"] == "markdown"]
    assert texts == [{"tag": "markdown", "element_id": "answer", "content": markdown}]
    assert card["schema"] == "2.0"
    assert card["config"]["update_multi"] is True


def test_a_button_has_the_documented_shape():
    card = answer_card("x", buttons=[Button("Forget", {"id": "7"}), Button("Keep", {"id": "8"})])
    documented = element(fixture("card_v2_answer_with_buttons"), "button")
    assert set(element(card, "button")) == set(documented)
    buttons = [item for item in card["body"]["elements"] if item["tag"] == "button"]
    assert [item["element_id"] for item in buttons] == ["button_1", "button_2"]
    assert buttons[0]["behaviors"] == [{"type": "callback", "value": {"id": "7"}}]


def test_a_note_is_plain_text():
    note = answer_card("x", note="<at id=all></at>")["body"]["elements"][1]
    assert (note["tag"], note["text"]["tag"]) == ("div", "plain_text")


def test_a_streaming_card_has_the_documented_config():
    config = streaming_card("…", element_id="answer")["config"]
    documented = fixture("card_v2_streaming_initial")["config"]
    assert {**documented, "summary": {"content": "…"}}.items() <= config.items()


@pytest.mark.parametrize("stop", [None, Button("Stop", {"id": "1"})])
@pytest.mark.parametrize("stage", ["", "3 s"])
@pytest.mark.parametrize(
    "final",
    [
        {"markdown": "done"},
        {"markdown": "…"},
        {"markdown": "done", "asked_text": "why?", "note": "kept"},
        {
            "markdown": "Notes\n\none\nits text\n\ntwo",
            "buttons": [Button("Delete", {"id": "2"}, entry=1), Button("More", {"id": "3"})],
            "foot": CardFoot("12 s", ("recalled",), (Button("Good", {"id": "4"}),)),
        },
    ],
)
def test_one_batch_makes_the_final_card_of_the_one_that_was_written(stop, stage, final):
    shown = streaming_card("…", element_id="answer", stage=stage, stop=stop)
    done = answer_card(element_id="answer", **final)
    card = copy.deepcopy(shown)
    apply_actions(card, closing_actions(shown, done), merge_settings)

    assert card["body"] == done["body"]
    assert card["config"].pop("streaming_mode") is False
    assert card["config"].pop("streaming_config")
    assert card["config"] == done["config"]


@pytest.mark.parametrize("dashes", ["|---|---|", "| :-- | --: |", "--- | ---", "|:-:|"])
def test_the_summary_of_a_table_has_its_words(dashes):
    markdown = f"<at id=ou_1></at>\n\n| Name | Days |\n{dashes}\n| Ann-Marie | 3 |\n\n- done"
    summary = answer_card(markdown)["config"]["summary"]["content"]
    assert summary == "Name Days Ann-Marie 3 - done"


def test_the_summary_is_the_beginning_without_markup():
    markdown = f"{at_tag('ou_x')} # **Plan** for [us](https://x)\n\n- " + "word " * 40
    summary = answer_card(markdown)["config"]["summary"]["content"]
    assert summary.startswith("Plan for us - word")
    assert len(summary) == 60
    assert "summary" not in answer_card("")["config"]


def test_a_card_is_measured_as_it_travels():
    card = answer_card('他"\n')
    body = json.dumps({"content": card_content(card)}, ensure_ascii=False, separators=(",", ":"))
    assert card_bytes(card) == len(body.encode()) - len('{"content":}')


def test_other_contents_have_the_documented_shape():
    assert json.loads(entity_content("7"))["data"] == {"card_id": "7"}
    assert json.loads(text_content("hi")) == {"text": "hi"}


@given(st.text(max_size=80), st.integers(0, 99), st.integers(0, 9))
def test_a_reply_uuid_is_stable_short_and_its_own(message_id, chunk, version):
    message_id = message_id.encode("utf-8", "replace").decode()
    uuid = reply_uuid(message_id, chunk, version)
    assert uuid == reply_uuid(message_id, chunk, version)
    assert len(uuid) <= 50
    others = {
        reply_uuid(message_id, chunk + 1, version),
        reply_uuid(message_id, chunk, version + 1),
    }
    assert uuid not in others
