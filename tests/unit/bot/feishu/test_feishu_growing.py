"""A text that grows reads as if it had come at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.feishu.markup import IncrementalMarkdown, card_markdown

PIECES = ["a", " ", "\n", "\n\n", "\n\n", "`", "``", "```", "```\n", "~~~", "\n```\n", "    ", "> "]
PIECES += ["[x](y)", "[x](https://x.example)", "[x]", "]", ":", "https://x.example"]
PIECES += [
    "<at id=all>",
    "<",
    "&",
    "&lt;",
    "#60;",
    "- ",
    "| a |\n|---|\n",
    "你",
    "\ud83d",
    "\ude00",
]
PIECES += ["(", ")", "![", "\x00", "\\", "@Ann", '"', "\r"]


@given(st.lists(st.sampled_from(PIECES), max_size=30))
def test_every_frame_is_what_the_whole_text_gives(pieces):
    growing, text = IncrementalMarkdown(), ""
    for piece in pieces:
        text += piece
        assert growing(text) == card_markdown(text)


@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=20).map("".join), max_size=5))
def test_a_text_that_begins_anew_is_another_one(texts):
    growing = IncrementalMarkdown()
    assert [growing(text) for text in texts] == [card_markdown(text) for text in texts]


def test_paragraphs_that_are_over_are_not_read_again(monkeypatch: pytest.MonkeyPatch):
    read: list[str] = []
    monkeypatch.setattr("bot.feishu.markup.card_markdown", lambda text: read.append(text) or text)
    growing = IncrementalMarkdown()
    growing("one\n\ntwo")
    growing("one\n\ntwo `three`\n\nfour")
    growing("one\n\ntwo `three`\n\nfour\n\n```\nfive\n\nsix")
    growing("one\n\ntwo `three`\n\nfour\n\n```\nfive\n\nsix\n```\n\nseven")
    assert read == [
        "one\n\n",
        "two",
        "two `three`\n\n",
        "four",
        "four\n\n",
        "```\nfive\n\nsix",
        "",
        "```\nfive\n\nsix\n```\n\nseven",
    ]
