"""Nothing a person or model writes becomes a card tag, and nothing of it is lost."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.feishu.markup import (
    _TO_ESCAPE,
    at_tag,
    card_markdown,
    escape,
    inert_images,
    model_text,
    name_mentions,
    plain_text,
    safe_links,
    unescape,
)
from tests.support.rows import every_row

TAG = re.compile(r"<[\s\u200b]*/?(at|person|font|text_tag|link|audio|number_tag|raw)\b", re.I)
MENTION = re.compile(r"<\s*/?(at|person)\b", re.I)
ALICE = at_tag("ou_alice")

signs = st.sampled_from(["<", ">", "&", "#", "/", "`", "```", "~~~", "\n", " ", "\t", "|", "\\"])
words = st.sampled_from(
    ["at", " id=all", "person", "font", "60;", "lt;", "AT", "py", "a", "1", "名"]
)
units = st.sampled_from(
    ["<at id=all></at>", "&#60;", "&#38;", "\u200b", "![", "](", ")", "> ", "\r\n"]
)
hostile = st.lists(signs | words | units, max_size=30).map("".join)
storable = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=60)


def outside_plain_fences(markdown: str) -> str:
    return re.sub(r"(?ms)^```[\w+#.-]*[ \t]*$\n.*?^```[ \t]*$", "", markdown)


@every_row(
    "text",
    [
        "<at id=all></at>",
        "<AT ID=all></AT>",
        "<at\nid=all></at>",
        "< at id=all></at>",
        "<\tat id=all></at>",
        "<\u200bat id=all></at>",
        "<<at id=all></at>",
        "<a<at id=all></at>t id=all></at>",
        "`<at id=all></at>`",
        "```<at id=all></at>```",
        "````\n```\n````\n<at id=all></at>\n```",
        "~~~\n```\n~~~\n<at id=all></at>\n```",
        "> ```\n<at id=all></at>\n```",
        "```\n<at id=all></at>",
        "```py\nx\n```\n<at id=all></at>\n```\ny\n```",
        "<person id='ou_x' show_name=true></person>",
        "<font color='red'>x</font>",
        "<text_tag color='blue'>x</text_tag>",
        "<link url='https://x'>x</link>",
        "<number_tag>1</number_tag>",
    ],
)
def test_no_tag_survives(text):
    escaped = card_markdown(text)
    assert not TAG.search(outside_plain_fences(escaped))
    assert not MENTION.search(escaped)
    assert unescape(escape(text)) == text


def test_an_entity_cannot_become_a_tag_when_it_is_decoded_once():
    assert escape("&#60;at id=all&#62;") == "&#38;#60;at id=all&#38;#62;"
    assert escape("&lt;at id=all&gt;") == "&#38;lt;at id=all&#38;gt;"


@every_row(
    "text", ["a < b", "1 <2", "x <= y", "i <3 you", "a <- b", "AT&T", "R & D", "a << 2", "x < 名"]
)
def test_ordinary_signs_stay_as_they_are(text):
    assert escape(text) == text


def test_code_in_a_plain_fence_stays_as_it_is():
    text = "see\n```html\n<a href='x'><b>&amp;</b></a>\n```\nend"
    assert escape(text) == text


def test_a_mention_in_a_plain_fence_is_broken_too():
    assert not MENTION.search(escape("```\n<at id=all></at>\n```"))


def test_markdown_keeps_its_meaning():
    text = "# T\n**b** *i* ~~s~~ [l](https://x?a=1&b=2)\n- x\n> q\n\n|a|b|\n|-|-|\n|1|2|"
    assert card_markdown(text) == text


def test_what_cannot_be_stored_is_replaced():
    assert escape("a\x00b\ud800c😀") == "a\ufffdb\ufffdc😀"


@given(st.one_of(hostile, storable))
def test_escaping_can_be_undone(text):
    assert unescape(escape(text)) == text


@given(st.one_of(hostile, storable, st.text(max_size=60)))
def test_what_a_card_shows_as_it_stands_is_not_escaped(text):
    step_by_step = safe_links(inert_images(escape(text)))
    assert card_markdown(text) == step_by_step
    if not _TO_ESCAPE.search(text):
        assert step_by_step == text


@given(st.one_of(hostile, storable))
def test_no_mention_survives_anywhere_and_no_tag_outside_plain_fences(text):
    escaped = card_markdown(text)
    assert not MENTION.search(escaped)
    assert not TAG.search(outside_plain_fences(escaped))
    assert not MENTION.search(plain_text(escaped, {}))


@every_row(
    ("text", "expected"),
    [
        ("![a](https://x/y.png)", "[a](https://x/y.png)"),
        ("![](https://x/y.png)", "[https://x/y.png](https://x/y.png)"),
        ('![a](https://x/y.png "t")', "[a](https://x/y.png)"),
        ("![cat](img_v3_x)", "cat"),
        ("![](img_v3_x)", "(image)"),
        ("![a][ref]", "&#33;[a][ref]"),
        ("![a](http://x/(y))", "&#33;[a](http://x/(y))"),
        ("wow![1]", "wow&#33;[1]"),
        ("```\n![a](x)\n```", "```\n![a](x)\n```"),
    ],
)
def test_images_become_links_or_words(text, expected):
    assert inert_images(text) == expected


def test_an_at_tag_takes_only_an_open_id():
    assert ALICE == "<at id=ou_alice></at>"
    for wrong in ("all", "ou_x></at><at id=all", "", "on_x"):
        with pytest.raises(ValueError, match="open_id"):
            at_tag(wrong)


def test_our_tags_become_names_for_the_model_and_names_are_data():
    names = {"ou_alice": "Alice <at id=all>"}
    markdown = f"{ALICE} see {escape('<b> & a')} {at_tag('ou_gone')}"
    assert model_text(markdown, names) == "@Alice <at id=all> see <b> & a "
    assert not MENTION.search(name_mentions(markdown, names))


def test_a_text_mentions_by_name():
    markdown = f"{ALICE} {escape('<at id=all></at> a < b')}"
    assert plain_text(markdown, {"ou_alice": "Alice"}) == "@Alice ＜at id=all>＜/at> a < b"


def test_a_link_that_becomes_words_does_not_grow_together_with_the_name_before_it() -> None:
    assert card_markdown("@Bob[a](x:y)") == "@Bob a (x:y)"
    assert card_markdown("(see [a](x:y))") == "(see a (x:y))"
