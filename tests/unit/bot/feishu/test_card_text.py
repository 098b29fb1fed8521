"""Received cards read as people see them, in every form in which Feishu hands them over."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bot.feishu.events import MessageEvent, parse_envelope, parse_message
from bot.feishu.models import forward_text, message_text, raw_message, shown_text
from tests.support.rows import every_row

PLACEHOLDER = "请升级至最新版本客户端，以查看内容"
BOB = {"key": "@_user_1", "id": "ou_bob", "id_type": "open_id", "name": "Bob"}


def plain(content: str) -> dict[str, Any]:
    return {"tag": "plain_text", "content": content}


def lark_md(content: str) -> dict[str, Any]:
    return {"tag": "lark_md", "content": content}


def fetched(card: object, mentions: list[dict[str, Any]] | None = None) -> Any:
    return raw_message(
        {
            "message_id": "om_card",
            "msg_type": "interactive",
            "body": {"content": json.dumps(card, ensure_ascii=False)},
            "mentions": mentions or [],
            "sender": {"id": "ou_alice"},
        }
    )


def read(card: object, mentions: list[dict[str, Any]] | None = None, **names: str) -> str:
    return message_text(fetched(card, mentions), names)


def pushed(card: object, mentions: list[dict[str, Any]] | None = None) -> MessageEvent:
    listed = [one | {"id": {"open_id": one["id"]}} for one in mentions or []]
    message = {
        "message_id": "om_1",
        "chat_id": "oc_1",
        "message_type": "interactive",
        "content": json.dumps(card),
        "mentions": listed,
    }
    header = {"event_id": "e", "event_type": "im.message.receive_v1"}
    return parse_message(parse_envelope({"header": header, "event": {"message": message}}))


def wrapped(card: object) -> dict[str, Any]:
    """The form of events of 2.0 cards: the original beside what old clients show."""
    rows = [[{"tag": "img", "image_key": "img_1"}], [{"tag": "text", "text": PLACEHOLDER}]]
    return {"title": None, "elements": rows, "user_dsl": json.dumps(card, ensure_ascii=False)}


def version_2(*elements: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    return {"schema": "2.0", "body": {"elements": list(elements)}, **more}


ALERT = {
    "config": {"wide_screen_mode": True},
    "header": {"title": plain("[P1] Disk full"), "subtitle": plain("db-7"), "template": "red"},
    "elements": [
        {
            "tag": "div",
            "text": lark_md("**Volume** /data is at 97 %"),
            "fields": [
                {"is_short": True, "text": lark_md("**Since**\n09:12")},
                {"is_short": True, "text": plain("Owner: storage")},
            ],
            "extra": {"tag": "img", "img_key": "img_1", "alt": plain("usage graph")},
        },
        {"tag": "hr"},
        {
            "tag": "column_set",
            "columns": [
                {"tag": "column", "elements": [{"tag": "markdown", "content": "left"}]},
                {"tag": "column", "elements": [{"tag": "div", "text": plain("right")}]},
            ],
        },
        {"tag": "markdown", "content": "runbook: [wiki](https://wiki.example/disk)"},
        {"tag": "img", "img_key": "img_2", "alt": plain(""), "title": plain("last day")},
        {
            "tag": "action",
            "actions": [
                {"tag": "button", "text": plain("Acknowledge"), "value": {"text": "SECRET"}},
                {"tag": "button", "text": lark_md("Open"), "url": "https://ops.example/1"},
                {
                    "tag": "overflow",
                    "options": [{"text": plain("Mute"), "value": "m"}, {"text": plain("Assign")}],
                    "confirm": {"title": plain("SECRET"), "text": plain("SECRET")},
                },
                {"tag": "date_picker", "placeholder": plain("Until when")},
            ],
        },
        {"tag": "note", "elements": [{"tag": "img", "img_key": "i"}, plain("by"), plain("Pager")]},
    ],
}

ALERT_TEXT = """[P1] Disk full
db-7
**Volume** /data is at 97 %
**Since**
09:12
Owner: storage
(image: usage graph)
---
left
right
runbook: [wiki](https://wiki.example/disk)
(image: last day)
[Acknowledge] [Open](https://ops.example/1) [Mute / Assign] [Until when]
(image) by Pager"""


@every_row("wrap", [lambda card: card, wrapped, lambda card: {"user_dsl": card}])
def test_an_alert_of_version_1_is_read_as_people_see_it(wrap: Any) -> None:
    assert read(wrap(ALERT)) == ALERT_TEXT
    assert pushed(wrap(ALERT)).text == ALERT_TEXT
    forward = raw_message({"message_id": "om_f", "msg_type": "merge_forward"})
    lines = forward_text([forward, fetched(wrap(ALERT))], {"ou_alice": "Alice"})
    assert lines == "Alice: " + ALERT_TEXT.replace("\n", "\n    ")


@every_row("wrap", [lambda card: card, wrapped, lambda card: {"user_dsl": card}])
def test_a_card_of_version_2_is_read_from_the_original(wrap: Any) -> None:
    card = version_2(
        {"tag": "markdown", "content": "Leave from <font color='red'>3</font> March"},
        {"tag": "collapsible_panel", "header": {"title": plain("Details")},
         "elements": [{"tag": "div", "text": plain("two days")}]},
        {"tag": "form", "elements": [
            {"tag": "input", "label": plain("Reason"), "default_value": "rest"},
            {"tag": "select_static", "placeholder": plain("Pick"),
             "options": [{"text": plain("Yes"), "value": "y"}, {"text": plain("No")}]},
            {"tag": "button", "text": plain("Send"), "behaviors": [
                {"type": "callback", "value": {"content": "SECRET"}}]},
        ]},
        {"tag": "checker", "checked": True, "text": plain("Deputy found")},
        {"tag": "button", "text": plain("See"), "behaviors": [
            {"type": "open_url", "default_url": "https://hr.example/1"}]},
        header={"title": plain("Approval"), "text_tag_list": [
            {"tag": "text_tag", "text": plain("urgent"), "color": "red"}]},
    )  # fmt: skip
    expected = (
        "Approval\nurgent\nLeave from 3 March\nDetails\ntwo days\n"
        "[Reason: rest]\n[Pick: Yes / No]\n[Send]\n[x] Deputy found\n[See](https://hr.example/1)"
    )
    assert read(wrap(card)) == expected
    assert pushed(wrap(card)).text == expected


def test_a_table_is_a_table() -> None:
    columns = [
        {"name": "who", "display_name": "Who", "data_type": "persons"},
        {"name": "size", "display_name": "Size | GB", "data_type": "number"},
        {"name": "tags", "data_type": "options"},
        {"name": "at", "display_name": "At", "data_type": "date"},
    ]
    rows = [
        {"who": "ou_bob", "size": 4.5, "tags": [{"text": "S2"}, {"text": "M1"}],
         "at": 1772323200000},
        {"who": ["ou_x"], "size": None},
    ]  # fmt: skip
    card = version_2({"tag": "table", "columns": columns, "rows": rows})
    assert read(card, ou_bob="Bob") == (
        "| Who | Size \\| GB | tags | At |\n| --- | --- | --- | --- |\n"
        "| @Bob | 4.5 | S2 M1 | 2026-03-01 00:00 UTC |\n| @someone |  |  |  |"
    )


@every_row(
    "card",
    [
        {"i18n_elements": {"zh_cn": [{"tag": "markdown", "content": "正文"}],
                           "en_us": [{"tag": "markdown", "content": "body"}]},
         "i18n_header": {"zh_cn": {"title": plain("标题")}}},
        {"header": {"title": {"tag": "plain_text", "i18n": {"zh_cn": "标题", "en_us": "title"}}},
         "i18n_elements": {"zh_cn": [{"tag": "div", "text": plain("正文")}]}},
        version_2({"tag": "markdown", "i18n_content": {"zh_cn": "正文", "en_us": "body"}},
                  header={"title": {"tag": "plain_text", "i18n_content": {"zh_cn": "标题"}}}),
    ],
)  # fmt: skip
def test_of_several_languages_one_is_read(card: dict[str, Any]) -> None:
    assert read(card) == "标题\n正文"


def test_a_language_that_is_the_only_one_is_read() -> None:
    assert read({"i18n_elements": {"ko_kr": [{"tag": "markdown", "content": "본문"}]}}) == "본문"


def test_the_simplified_form_is_read_with_its_buttons_menus_and_notes() -> None:
    """The example of Feishu, "Receive message content"."""
    rows = [
        [{"tag": "button", "text": "主按钮"}, {"tag": "button", "text": "次按钮"}],
        [{"tag": "a", "href": "https://www.feishu.cn", "text": "飞书"},
         {"tag": "text", "text": "整合即时沟通，"},
         {"tag": "at", "user_id": "@_user_1", "user_name": ""},
         {"tag": "text", "text": "更愉悦。"}],
        [{"tag": "hr"}],
        [{"tag": "text", "text": "图片标题"}, {"tag": "img", "image_key": "img_1"}],
        [{"tag": "note", "elements": [{"tag": "img", "image_key": "i"},
                                      {"tag": "text", "text": "备注信息"}]}],
        [{"tag": "text", "text": "选择"},
         {"tag": "select_static", "options": ["选项1", "选项2"], "placeholder": "默认提示文本"}],
        [{"tag": "overflow", "options": ["打开官网"]}],
        [{"tag": "date_picker", "placeholder": "请选择日期", "initial_date": "2021-1-1"}],
    ]  # fmt: skip
    assert read({"title": "卡片标题", "elements": rows}, [BOB]) == (
        "卡片标题\n[主按钮] [次按钮]\n"
        "[飞书](https://www.feishu.cn)整合即时沟通，@Bob 更愉悦。\n---\n"
        "图片标题 (image)\n(image) 备注信息\n选择 [默认提示文本: 选项1 / 选项2]\n[打开官网]\n"
        "[请选择日期: 2021-1-1]"
    )


@every_row(
    "card",
    [
        {"title": None, "elements": [[{"tag": "text", "text": PLACEHOLDER}]]},
        {"title": None, "elements": wrapped({})["elements"]},
        {"type": "template", "data": {"template_id": "t", "template_variable": {"text": "x"}}},
        {"user_dsl": "no json"},
        {"user_dsl": 7},
        {},
    ],
)
def test_a_card_of_which_nothing_can_be_read_is_called_a_card(card: dict[str, Any]) -> None:
    assert read(card) == "[card]"


def test_a_wrapped_card_without_words_is_read_from_the_rows_beside_it() -> None:
    rows = [[{"tag": "text", "text": "Disk full"}]]
    card = {"title": "P1", "elements": rows, "user_dsl": json.dumps({"type": "template"})}
    assert read(card) == "P1\nDisk full"


def test_a_link_whose_address_stands_beside_the_text_is_read_with_it() -> None:
    href = {"wiki": {"url": "https://wiki.example", "pc_url": "x"}}
    card = {"elements": [{"tag": "markdown", "content": "[see]($wiki) [a]($b)", "href": href}]}
    assert read(card) == "[see](https://wiki.example) [a]($b)"


def test_elements_that_are_nested_as_deep_as_feishu_allows_are_read() -> None:
    element: dict[str, Any] = {"tag": "markdown", "content": "deep"}
    for _ in range(5):
        element = {"tag": "column_set", "columns": [{"tag": "column", "elements": [element]}]}
    assert read(version_2({"tag": "form", "elements": [element]})) == "deep"


def test_elements_are_read_in_the_form_that_clients_store() -> None:
    said = {"tag": "plain_text", "property": {"content": "oak"}}
    code = {"contents": [{"contents": [{"content": "elm"}]}]}
    stored: list[Any] = [
        {"tag": "heading", "property": {"content": "pine"}},
        {"tag": "list", "property": {"items": [{"elements": [said]}]}},
        {"tag": "code_block", "property": code},
    ]
    for form in (read(version_2(*stored)), read(version_2(None, *stored, {"tag": None}))):
        assert [one for one in ("pine", "oak", "elm") if one not in form] == []


def test_an_element_that_is_new_shows_its_words_and_no_values() -> None:
    card = version_2({"tag": "hologram", "text": plain("see"), "value": {"text": "SECRET"}})
    assert read(card) == "see"


@every_row(
    ("tag", "shown"),
    [
        ("<at id=ou_foreign mention_key=@_user_1></at>", "@Bob"),
        ('<at id="ou_foreign" mention_key="@_user_1">someone else</at>', "@Bob"),
        ("<at mention_key='@_user_1' id='ou_foreign'/>", "@Bob"),
        ("<at ids=ou_a,ou_carol mentions_key=@_user_1,></at>", "@Bob @Carol"),
        ("<at ids=ou_a,ou_b mentions_key=@_user_1,@_user_9></at>", "@Bob @someone"),
        ("<at id=ou_bob></at>", "@Bob"),
        ("<at id=ou_carol></at>", "@Carol"),
        ("<at id=ou_foreign mention_key=@_user_9></at>", "@someone"),
        ("<at id=ou_foreign>Dave</at>", "@Dave"),
        ('<at user_id="ou_foreign">@Dave</at>', "@Dave"),
        ("<AT ID=ou_foreign></AT>", "@someone"),
        ("<at></at>", "@someone"),
        ("<at id=all></at>", "@all"),
        ("<person id='ou_carol' show_name=true></person>", "@Carol"),
    ],
)
def test_at_tags_become_names(tag: str, shown: str) -> None:
    names = {"ou_carol": "Carol"}
    for card in (
        version_2({"tag": "markdown", "content": f"ask {tag} now"}),
        {"elements": [{"tag": "div", "text": lark_md(f"ask {tag} now")}]},
        {"elements": [{"tag": "note", "elements": [lark_md(f"ask {tag} now")]}]},
    ):
        assert read(card, [BOB], **names) == f"ask {shown} now"
    tight = version_2({"tag": "markdown", "content": f"ask{tag}now"})
    assert read(tight, [BOB], **names) == f"ask {shown} now"
    if "carol" not in tag:
        assert pushed(card, [BOB]).text == f"ask {shown} now"


@every_row(
    ("content", "shown"),
    [
        ("<font color=red>**down**</font> <text_tag color='blue'>P1</text_tag>", "**down** P1"),
        ("one<br>two<br/>three", "one\ntwo\nthree"),
        ("<a href='https://x.example'>see</a> <a href=https://y.example></a>",
         "[see](https://x.example) [https://y.example](https://y.example)"),
        ("<link icon='a' url='https://x.example' pc_url=''>see</link>", "[see](https://x.example)"),
        ("```html\n<a href='x'>y</a><br>\n```", "```html\n<a href='x'>y</a><br>\n```"),
        ("&#60;font> a < b", "<font> a < b"),
    ],
)  # fmt: skip
def test_tags_that_only_decorate_are_left_out(content: str, shown: str) -> None:
    assert read(version_2({"tag": "markdown", "content": content})) == shown


def test_a_name_is_taken_as_it_is() -> None:
    card = version_2({"tag": "markdown", "content": "<at id=ou_x></at> &lt;3 &#38;amp;"})
    assert read(card, ou_x="&lt;at id=all>") == "@&lt;at id=all> <3 &amp;"


def test_an_escaped_tag_is_text() -> None:
    assert read(version_2({"tag": "markdown", "content": "&#60;at id=all>"})) == "<at id=all>"


def test_a_card_for_the_bot_mentions_it() -> None:
    card = wrapped(version_2({"tag": "markdown", "content": "<at id=x mention_key=@_user_1></at>"}))
    event = pushed(card, [BOB])
    assert [one.open_id for one in event.mentions] == ["ou_bob"]
    assert event.template == "@_user_1"


def test_what_a_sent_card_shows_is_found_in_every_form() -> None:
    card = version_2({"tag": "markdown", "content": "answer", "element_id": "x"})
    for form in (card, wrapped(card), {"user_dsl": card}):
        assert shown_text(fetched(form)) == "answer"


NAMES = (
    "tag text content elements columns fields actions options rows name i18n_content extra "
    "placeholder header title alt"
).split()
TAGS = ["div", "table", "note", "select_static", "img", "at", "markdown"]
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(TAGS),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
        | st.builds(lambda tag, more: {**more, "tag": tag}, st.sampled_from(TAGS),
                    st.dictionaries(st.sampled_from(NAMES), inner, max_size=4))
    ),
    max_leaves=25,
)  # fmt: skip


@given(values)
def test_any_card_is_read_without_a_raw_tag(value: object) -> None:
    for card in ({"elements": value}, {"header": value, "user_dsl": {"body": {"elements": value}}}):
        assert "<at" not in read(card)


@every_row("name", ["text", "elements", "placeholder", "options", "extra"])
def test_a_card_of_any_depth_and_size_is_read_in_time(name: str) -> None:
    node: Any = "x"
    for _ in range(400):
        node = {"tag": "select_static", name: [node, {name: "y"}]}
    read({"elements": [node]})
    read({"elements": [{"tag": "div", name: plain("<at id=" * 20_000)}]})
