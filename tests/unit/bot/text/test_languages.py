"""Which texts tell the language of whoever wrote them."""

from __future__ import annotations

import time

import pytest

from bot.text.languages import says_words


@pytest.mark.parametrize("text", ["hello", "你好", "@Memo 在吗", "ok", "see https://a.b", "Ünal?"])
def test_words_tell_the_language(text: str) -> None:
    assert says_words(text)


@pytest.mark.parametrize(
    "text",
    ["", "@Memo", "3", "👍", "?!", "https://example.com/a", "[image]", "[file: plan.pdf]", "@王芳"],
)
def test_names_numbers_links_and_pictures_do_not(text: str) -> None:
    assert not says_words(text)


@pytest.mark.parametrize("piece", ["@", "中", "a", "[a", "[a:", "[a: ", "://", "a://", "x "])
def test_the_longest_message_holds_nobody_else_up(piece: str) -> None:
    """Feishu takes 150 KB of text."""
    text = piece * (150_000 // len(piece.encode()))
    begun = time.process_time()
    says_words(text)

    assert time.process_time() - begun < 2
