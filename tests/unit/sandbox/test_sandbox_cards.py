"""What the stand-in platform takes for a card, rule by rule."""

import json
from pathlib import Path

import pytest

from sandbox.cards.card_check import CardInvalid, check_card, notified_by, parse_card, table_count
from tests.support.rows import every_row

DATA = Path(__file__).parents[2] / "data" / "sandbox"
TABLE = "| a | b |\n|---|---|\n| 1 | 2 |\n"


def check(card, people=("ou_alice",), images=("img_v3_known",)):
    return check_card(card, knows_person=people.__contains__, knows_image=images.__contains__)


def card(*elements, **top):
    return {"schema": "2.0", "body": {"elements": list(elements)}, **top}


def markdown(content, **more):
    return {"tag": "markdown", "content": content, **more}


def refusal(value, **known):
    with pytest.raises(CardInvalid) as caught:
        check(value, **known)
    return caught.value


def test_the_official_shapes_are_accepted():
    answer = json.loads((DATA / "card_v2_answer_with_buttons.json").read_text())
    streaming = json.loads((DATA / "card_v2_streaming_initial.json").read_text())
    assert check(answer, people=("ou_84aad35d084aa403a838cf73ee18467",)).element_ids == {
        "answer",
        "sources",
        "btn_forget",
    }
    assert check(streaming).elements == 1


BUTTON = {"tag": "button", "text": {"tag": "plain_text", "content": "x"}}
TABLE_TAG = {"tag": "table", "columns": [], "rows": []}
SUBMIT = {**BUTTON, "name": "send", "form_action_type": "submit"}
SELECT = {"tag": "select_static", "name": "one", "options": []}


def form(*elements, **more):
    return {"tag": "form", "name": "f", "elements": list(elements), **more}


def nested(depth):
    inner = [nested(depth - 1)] if depth > 1 else [markdown("x")]
    return {"tag": "collapsible_panel", "elements": inner}


def columns(*made, **more):
    return {"tag": "column_set", "columns": [{"tag": "column", **one} for one in made], **more}


def calling(**behavior):
    return {"tag": "button", "behaviors": [{"type": "callback", **behavior}]}


UNKNOWN, NO_CARD_1, TABLES, IMAGE = 200621, 200861, 11310, 200570
REFUSED = [
    ("an unknown attribute of the card", card(markdown("x"), i18n_elements={}), UNKNOWN),
    ("of an element", card(markdown("x", href={})), UNKNOWN),
    ("of the configuration", card(markdown("x"), config={"wide_screen_mode": True}), UNKNOWN),
    ("of a button", card({**BUTTON, "value": {}}), UNKNOWN),
    ("of a text", card({"tag": "div", "text": {**BUTTON["text"], "bold": True}}), UNKNOWN),
    ("of a behaviour", card(calling(value={}, url="x")), UNKNOWN),
    ("an unknown behaviour", card({"tag": "button", "behaviors": [{"type": "jump"}]}), UNKNOWN),
    ("an unknown tag", card({"tag": "unheard_of"}), UNKNOWN),
    ("of a title", card(markdown("x"), header={"title": {"tag": "h1", "content": "x"}}), UNKNOWN),
    ("a component of cards 1.0", card({"tag": "action"}), NO_CARD_1),
    ("another", card({"tag": "note"}), NO_CARD_1),
    ("a card without schema 2.0", {"elements": []}, 300303),
    ("a card that is not shared", card(config={"update_multi": False}), 300302),
    ("more than two hundred elements", card(*[markdown("x")] * 201), 300305),
    ("six tables in Markdown", card(markdown("\n\n".join([TABLE] * 6))), TABLES),
    ("six tables together",
     card(TABLE_TAG, TABLE_TAG, markdown("\n\n".join([TABLE] * 4))), TABLES),
    ("a table that is not at the root",
     card({"tag": "collapsible_panel", "elements": [{"tag": "table"}]}), UNKNOWN),
    ("a form without a button that submits", card(form(SELECT)), UNKNOWN),
    ("a field without a name", card(form({**SELECT, "name": ""}, SUBMIT)), UNKNOWN),
    ("two fields of one name", card(form(SELECT, SELECT, SUBMIT)), UNKNOWN),
    ("a form with the name of its field", card(form(SELECT, SUBMIT, name="one")), UNKNOWN),
    ("a table in a form", card(form({"tag": "table"}, SUBMIT)), UNKNOWN),
    ("a form in a form", card(form(form(SUBMIT), SUBMIT)), UNKNOWN),
    ("a form in a container",
     card({"tag": "interactive_container", "elements": [form(SELECT, SUBMIT)]}), UNKNOWN),
    ("containers six deep", card(nested(6)), UNKNOWN),
    ("an image of elsewhere", card(markdown("![x](https://example.com/x.png)")), IMAGE),
    ("an unknown image", card({"tag": "img", "img_key": "img_nope"}), IMAGE),
    ("two elements of one id",
     card(markdown("a", element_id="x"), markdown("b", element_id="x")), 300301),
    *(("no element id", card(markdown("a", element_id=wrong)), UNKNOWN)
      for wrong in ("1x", "x" * 21, "a-b", "")),
    ("a value that is a number", card(calling(value=3)), UNKNOWN),
    *(("columns that the documents do not allow", card(wrong), UNKNOWN) for wrong in (
        columns({}, flex_mode="wrap"),
        columns({"width": "fill"}),
        columns({"width": "8px"}),
        columns({"width": "weighted", "weight": 6}),
        columns({"width": "auto", "weight": 1}),
        columns({"direction": "row"}),
        columns({"vertical_align": "middle"}),
        columns({"elements": [TABLE_TAG]}),
        columns({"elements": [form()]}),
    )),
]  # fmt: skip


@every_row("why, wrong, code", REFUSED)
def test_what_feishu_refuses_is_refused_by_its_code(why, wrong, code):
    assert refusal(wrong).code == code


def test_what_is_just_allowed_is_taken():
    assert check(card(*[markdown("x")] * 200)).elements == 200
    assert check(card(TABLE_TAG, markdown(TABLE * 4))).tables == 5
    check(card(form(SELECT, SUBMIT)))
    check(card(nested(5)))
    check(card(markdown("![x](img_v3_known)")))
    wide = ({"width": "weighted", "weight": 5}, {"width": "auto"}, {"width": "600px"})
    assert check(card(columns(*wide, flex_mode="stretch"))).elements == 4


def test_text_that_is_not_a_json_object_is_no_card():
    for raw in ("", "[]", "{", '"x"'):
        with pytest.raises(CardInvalid):
            parse_card(raw)


def test_a_table_in_a_code_block_is_no_table():
    assert table_count("```\n" + TABLE + "```") == 0
    assert table_count(TABLE) == 1
    assert table_count("a | b\n- | -") == 1
    assert table_count("a\n---\nb") == 0


@every_row(
    "tag", ["<at id=ou_gone></at>", '<at id="ou_gone"></at>', "<AT ids=ou_alice,ou_gone></AT>"]
)
def test_an_at_tag_of_somebody_unknown_is_refused(tag):
    fault = refusal(card(markdown(f"hi {tag}")))
    assert (fault.code, fault.value) == (100290, "ou_gone")


def test_the_people_a_card_notifies_are_those_of_its_at_tags():
    made = card(markdown("<at id=ou_alice></at> hi"), markdown("<at id=all></at>"))
    check(made)
    assert notified_by(made) == ["ou_alice", "all"]


def test_an_escaped_at_tag_notifies_nobody():
    assert notified_by(card(markdown("&#60;at id=all&#62;&#60;/at&#62;"))) == []
