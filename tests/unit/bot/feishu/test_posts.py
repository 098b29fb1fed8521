"""Posts in the shapes that clients send: a person's words and files reach the prompt from each."""

import json
from typing import Any

from bot.feishu.content import holds_attachment, render_content
from bot.feishu.fields import Attachment, MessageContent
from tests.support.rows import every_row

AT = {"tag": "at", "user_id": "@_user_1", "user_name": "Bot"}
ASKED = [AT, {"tag": "text", "text": " how many?"}]
FULL = [ASKED]
FILE = {"file_key": "file_a", "file_name": "访客.csv", "is_folder": False}
CSV = Attachment("file", "file_a", "访客.csv")


def read(**post: Any) -> MessageContent:
    return render_content("post", json.dumps(post))


def pictures(content: MessageContent) -> list[str]:
    return [one.key for one in content.attachments if one.kind == "image"]


@every_row(
    "post",
    [
        {"content": FULL, "files": [FILE]},
        {"content": FULL, "files": [FILE, FILE]},
        {"content": FULL, "content_v2": [[{"tag": "md", "text": "@_user_1 how many?"}]]}
        | {"files": [FILE]},
        {"zh_cn": {"content": FULL, "files": [FILE]}},
        {"th_th": {"content": FULL}, "files": [FILE]},
        {"post": {"en_us": {"content": FULL, "files": [FILE]}}},
        {"content": FULL, "attachments": [FILE, None, "stray"]},
        {"content": FULL, "files": FILE},
        {"content": FULL, "files": json.dumps([FILE])},
        {"content": FULL, "files": [[FILE]]},
        {"post": {"files": [FILE], "zh_cn": {"content": FULL}}},
        {"body": {"post": {"post": {"zh_cn": {"content": FULL}}}, "extra": {"list": [FILE]}}}
        | {"files": [FILE]},
        {"content": [*FULL, [{"tag": "file", **FILE}]]},
    ],
)
def test_files_of_a_post_are_read_once_wherever_they_stand(post: dict[str, Any]) -> None:
    found = read(**post)
    assert "@_user_1 how many?" in found.template
    assert found.attachments == (CSV,)
    assert found.template.count("[file: 访客.csv]") == 1


def test_a_post_of_files_only_looks_like_a_message_with_a_file() -> None:
    found = read(title="", content=[[]], content_v2=[[]], files=[FILE])
    assert found == MessageContent("[file: 访客.csv]", (CSV,))
    assert holds_attachment(found.template)


def test_a_folder_and_a_file_without_a_key_are_named() -> None:
    folder = {"file_key": "folder_a", "file_name": "photos", "is_folder": True}
    found = read(content=FULL, files=[folder, {"file_name": "no_key.csv"}, None])
    assert found.template.splitlines()[1:] == ["[folder: photos]", "[file: no_key.csv]"]
    assert [(one.kind, one.name) for one in found.attachments] == [
        ("folder", "photos"),
        ("file that Feishu sent without a key", "no_key.csv"),
    ]


@every_row(
    "markdown",
    [
        [[]],
        [None],
        None,
        {},
        "",
        [[{"tag": "md", "text": ""}]],
        [[{"tag": "md"}]],
        [[{"tag": "md", "text": None}, 7]],
        [[AT]],
        [[{"tag": "hr"}]],
    ],
)
def test_a_markdown_version_that_says_less_does_not_hide_the_plain_one(markdown: Any) -> None:
    assert read(content=FULL, content_v2=markdown).template == "@_user_1 how many?"


@every_row(
    "post",
    [
        {"content": ASKED},
        {"content": [AT, [{"tag": "text", "text": "how many?"}]]},
        {"content": [[AT, " how many?"]]},
        {"content": [[[AT], [{"tag": "text", "text": " how many?"}]]]},
        {"content": ["@_user_1 how many?"]},
        {"content": "@_user_1 how many?"},
        {"content": json.dumps(FULL)},
        {"content": [[AT, {"tag": "markdown", "text": " how many?"}], None]},
        {"content": [[AT, {"tag": "markdown", "content": " how many?"}]]},
        {"content": [[AT, {"tag": "quote", "elements": [{"tag": "text", "text": " how many?"}]}]]},
        {"content": [], "en_us": {"content": FULL}},
        {"en_us": {"content": [[]]}, "zh_cn": {"content": FULL}},
        {"post": {"content": FULL}},
        {"post": {"zh_cn": {"content": FULL}}},
        {"vi_vn": {"content": FULL}},
        {"content_v2": FULL},
        {"content": {"0": ASKED}},
        {"content": {"zh_cn": [[]], "en_us": FULL}},
        {"zh_cn": {"content": [[]]}, "en_us": {"content": FULL}},
        {"a": {"post": {"post": {"de_de": {"content": FULL}}}}},
        {"content": [[AT, {"tag": "text", "text": {"content": " how many?"}}]]},
        {"post": FULL},
        {"post": "@_user_1 how many?"},
        {"en_us": "@_user_1 how many?"},
        {"post": json.dumps({"zh_cn": {"content": FULL}})},
        {"content": {"post": {"zh_cn": {"content": FULL}}}},
        {"content": json.dumps({"en_us": {"content": FULL}})},
        {"msg_type": "post", "content": {"post": {"en_us": FULL}}},
    ],
)
def test_the_words_are_read_from_every_shape(post: dict[str, Any]) -> None:
    assert " ".join(read(**post).template.split()) == "@_user_1 how many?"


@every_row(
    ("node", "says"),
    [
        ({"tag": "a", "text": "", "href": "https://x.test/elm"}, "https://x.test/elm"),
        ({"tag": "emotion", "emoji_type": "SMILE"}, "OAK"),
        ({"tag": "callout", "text": "ELM"}, "ELM"),
        ({"tag": "quote_container", "children": [{"tag": "text", "text": "ELM"}]}, "ELM"),
        ({"tag": "text", "text": 42}, "42"),
        ({"tag": "mention_doc", "title": "ELM", "url": "https://x.test"}, "[mention_doc: ELM]"),
        ({"tag": "list", "items": [{"text": "one"}, {"text": "two"}]}, "one\ntwo"),
        ({"tag": "emotion", "key": "OK"}, ":emoji:"),
        ({"tag": "text", "text": "ELM", "style": ["bold", "lineThrough"]}, "ELM"),
    ],
)
def test_the_words_of_each_element_are_read(node: dict[str, Any], says: str) -> None:
    text = read(content=[[node, {"tag": "text", "text": " OAK"}]]).template
    assert says in text
    assert "OAK" in text


@every_row(
    "content",
    [
        json.dumps(FULL),
        "@_user_1 how many?",
        json.dumps("@_user_1 how many?"),
        json.dumps(json.dumps({"content": FULL})),
    ],
)
def test_a_post_without_an_object_around_it_is_read(content: str) -> None:
    assert render_content("post", content).template == "@_user_1 how many?"


@every_row("text", ["[1] see the appendix", "[1, 2]", "{draft", '{"not json'])
def test_text_that_only_looks_like_json_stays_text(text: str) -> None:
    assert read(content=text).template == text


@every_row("wrapped", [{"content": {"zh_cn": {"title": "Plan", "content": FULL}}},
                       {"content": {"title": "Plan", "content": FULL}}])  # fmt: skip
def test_the_title_of_a_wrapped_post_is_read(wrapped: dict[str, Any]) -> None:
    assert read(**wrapped).template == "**Plan**\n@_user_1 how many?"


PLAIN = [["The plan for Oslo"], ["Ask Lin about 会场预算"], ["预算是 4200 欧元"]]


@every_row(
    ("markdown", "text"),
    [
        (
            "The **plan** for Oslo",
            "The plan for Oslo\nAsk Lin about 会场预算\n预算是 4200 欧元",
        ),
        (
            "Ask *Lin* about 会场**预算**\n\n预算是 4200 欧元",
            "Ask *Lin* about 会场**预算**\n\n预算是 4200 欧元\nThe plan for Oslo",
        ),
        (
            "# The plan for Oslo\nAsk Lin about 会场**预算**\n- 预算是 `4200` 欧元",
            "# The plan for Oslo\nAsk Lin about 会场**预算**\n- 预算是 `4200` 欧元",
        ),
    ],
)
def test_rows_that_the_markdown_version_lacks_are_added(markdown: str, text: str) -> None:
    found = read(content=PLAIN, content_v2=[[{"tag": "md", "text": markdown}]])
    assert sorted(found.template.splitlines()) == sorted(text.splitlines())


def test_a_key_beside_the_rows_is_the_file_or_picture_that_it_names() -> None:
    found = read(content=FULL, files=["file_v3_a"], images=["img_v3_b", "words"])
    assert [(one.kind, one.key) for one in found.attachments] == [
        ("file", "file_v3_a"),
        ("image", "img_v3_b"),
    ]


@every_row("tag", ["quote", "table", "callout"])
def test_a_picture_in_a_node_of_any_kind_is_loaded(tag: str) -> None:
    picture = {"tag": "img", "image_key": "img_v3_1"}
    found = read(content=[[{"tag": tag, "rows": [{"cells": [picture, {"text": "ELM"}]}]}]])
    assert pictures(found) == ["img_v3_1"]
    assert "ELM" in found.template


@every_row("tag", ["media", "video"])
def test_of_a_video_not_its_first_picture_is_loaded(tag: str) -> None:
    video = {"tag": tag, "file_key": "file_v3_1", "image_key": "img_v3_1", "file_name": "a.mp4"}
    found = read(content=[[video]])
    assert found.template == "[video]"
    assert [(one.kind, one.key) for one in found.attachments] == [("media", "file_v3_1")]


def test_an_unknown_node_is_named_and_not_lost() -> None:
    assert read(content=[[{"tag": "hologram"}]]).template == "[hologram]"


@every_row(
    ("markdown", "keys"),
    [
        ("see\n![image](img_v3_1)", ["img_v3_1"]),
        ('![](img_v3_1) ![same](img_v3_1) ![x](img_v3_2 "title")', ["img_v3_1", "img_v3_2"]),
        ("```py\nx\n```\n![](img_v3_1)", ["img_v3_1"]),
        ("~~~\n![](img_v3_9)\n~~~\n`` ![](img_v3_8) `` ![](<img_v3_1>)", ["img_v3_1"]),
        ("[![plan](img_v3_1)](https://x.test)", ["img_v3_1"]),
        ("![a [nested] plan](img_v3_1)", ["img_v3_1"]),
        ("![plan][p]\n\n[p]: img_v3_1", ["img_v3_1"]),
        ("```\n![](img_v3_9)", []),
        ("- ~~~\n  ![](img_v3_9)\n  ~~~\n![](img_v3_1)", ["img_v3_1"]),
        ("- ~~~\n![](img_v3_9)\n~~~", []),
        ("> 1. ```\n> ![](img_v3_9)\n> ```\n![](img_v3_1)", ["img_v3_1"]),
        ("![](https://example.com/img_v3_9)", []),
        ('<img alt="x" src="img_v3_1" /> `<img src="img_v3_9">`', ["img_v3_1"]),
    ],
)
def test_pictures_in_markdown_are_found_outside_of_code(markdown: str, keys: list[str]) -> None:
    rows = [[{"tag": "md", "text": markdown}]]
    assert pictures(read(content=[[]], content_v2=rows)) == keys
    assert pictures(read(content=rows)) == keys


def test_a_picture_in_both_versions_is_loaded_once() -> None:
    plain = [*FULL, [{"tag": "img", "image_key": "img_v3_1"}]]
    rows = [[{"tag": "md", "text": "@_user_1 how many?\n![image](img_v3_1)\n![](img_v3_2)"}]]
    assert pictures(read(content=plain, content_v2=rows)) == ["img_v3_1", "img_v3_2"]


def test_a_code_block_stays_closed_whatever_is_in_it() -> None:
    code = {"tag": "code_block", "language": "a\nb", "text": "```\nx\n````\ny"}
    text = read(content=[[code], [{"tag": "text", "text": "after"}]]).template
    assert text == "`````\n```\nx\n````\ny\n`````\nafter"


@every_row("content", [7, True, [[[[[[[]]]]]]], [{}], [[{"tag": 3}]], {"a": 1}])
def test_nothing_raises(content: Any) -> None:
    assert render_content("post", json.dumps({"content": content, "files": content})).template == ""
