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


@every_row(
    "wrong",
    [
        card(markdown("x"), i18n_elements={}),
        card(markdown("x", href={})),
        card(markdown("x"), config={"wide_screen_mode": True}),
        card({"tag": "button", "text": {"tag": "plain_text", "content": "x"}, "value": {}}),
        card({"tag": "div", "text": {"tag": "plain_text", "content": "x", "bold": True}}),
        card({"tag": "button", "behaviors": [{"type": "callback", "value": {}, "url": "x"}]}),
        card({"tag": "button", "behaviors": [{"type": "jump"}]}),
        card({"tag": "unheard_of"}),
        card(markdown("x"), header={"title": {"tag": "h1", "content": "x"}}),
    ],
)
def test_an_attribute_or_tag_that_is_not_known_is_refused(wrong):
    assert refusal(wrong).code == 200621


@every_row("tag", ["action", "note"])
def test_components_of_card_1_0_are_refused_by_their_own_code(tag):
    assert refusal(card({"tag": tag})).code == 200861


def test_a_card_without_schema_2_0_is_refused():
    assert refusal({"elements": []}).code == 300303


def test_a_card_that_is_not_shared_is_refused():
    assert refusal(card(config={"update_multi": False})).code == 300302


def test_text_that_is_not_a_json_object_is_no_card():
    for raw in ("", "[]", "{", '"x"'):
        with pytest.raises(CardInvalid):
            parse_card(raw)


def test_more_than_two_hundred_elements_are_refused():
    assert check(card(*[markdown("x")] * 200)).elements == 200
    assert refusal(card(*[markdown("x")] * 201)).code == 300305


def test_more_than_five_tables_are_refused_whether_component_or_markdown():
    table = {"tag": "table", "columns": [], "rows": []}
    assert check(card(table, markdown(TABLE * 4))).tables == 5
    assert refusal(card(markdown("\n\n".join([TABLE] * 6)))).code == 11310
    assert refusal(card(table, table, markdown("\n\n".join([TABLE] * 4)))).code == 11310


def test_a_table_in_a_code_block_is_no_table():
    assert table_count("```\n" + TABLE + "```") == 0
    assert table_count(TABLE) == 1
    assert table_count("a | b\n- | -") == 1
    assert table_count("a\n---\nb") == 0


def test_a_table_component_stands_only_at_the_root():
    panel = {"tag": "collapsible_panel", "elements": [{"tag": "table"}]}
    assert refusal(card(panel)).code == 200621


def form(*elements, **more):
    return {"tag": "form", "name": "f", "elements": list(elements), **more}


SUBMIT = {
    "tag": "button",
    "name": "send",
    "text": {"tag": "plain_text", "content": "Send"},
    "form_action_type": "submit",
}
SELECT = {"tag": "select_static", "name": "one", "options": []}


def test_a_form_has_names_and_a_button_that_submits():
    check(card(form(SELECT, SUBMIT)))
    nested = {"tag": "interactive_container", "elements": [form(SELECT, SUBMIT)]}
    for wrong in (
        form(SELECT),
        form({**SELECT, "name": ""}, SUBMIT),
        form(SELECT, SELECT, SUBMIT),
        form(SELECT, SUBMIT, name="one"),
        form({"tag": "table"}, SUBMIT),
        form(form(SUBMIT), SUBMIT),
        nested,
    ):
        assert refusal(card(wrong)).code == 200621


def test_containers_are_nested_at_most_five_deep():
    def nested(depth):
        inner = [nested(depth - 1)] if depth > 1 else [markdown("x")]
        return {"tag": "collapsible_panel", "elements": inner}

    check(card(nested(5)))
    assert refusal(card(nested(6))).code == 200621


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


def test_an_image_that_was_not_uploaded_is_refused():
    check(card(markdown("![x](img_v3_known)")))
    assert refusal(card(markdown("![x](https://example.com/x.png)"))).code == 200570
    assert refusal(card({"tag": "img", "img_key": "img_nope"})).code == 200570


def test_an_element_id_is_unique_short_and_starts_with_a_letter():
    assert (
        refusal(card(markdown("a", element_id="x"), markdown("b", element_id="x"))).code == 300301
    )
    for wrong in ("1x", "x" * 21, "a-b", ""):
        assert refusal(card(markdown("a", element_id=wrong))).code == 200621


def test_a_callback_value_is_an_object_or_a_string():
    button = {"tag": "button", "behaviors": [{"type": "callback", "value": 3}]}
    assert refusal(card(button)).code == 200621


def columns(*made, **more):
    return card(
        {"tag": "column_set", "columns": [{"tag": "column", **one} for one in made], **more}
    )


def test_columns_are_as_wide_as_the_documents_say():
    wide = ({"width": "weighted", "weight": 5}, {"width": "auto"}, {"width": "600px"})
    assert check(columns(*wide, flex_mode="stretch")).elements == 4


@every_row(
    "wrong",
    [
        columns({}, flex_mode="wrap"),
        columns({"width": "fill"}),
        columns({"width": "8px"}),
        columns({"width": "weighted", "weight": 6}),
        columns({"width": "auto", "weight": 1}),
        columns({"direction": "row"}),
        columns({"vertical_align": "middle"}),
        columns({"elements": [{"tag": "table", "columns": [], "rows": []}]}),
        columns({"elements": [{"tag": "form", "name": "f", "elements": []}]}),
    ],
)
def test_columns_that_the_documents_do_not_allow_are_refused(wrong):
    assert refusal(wrong).code == 200621
