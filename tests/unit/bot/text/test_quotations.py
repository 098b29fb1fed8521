"""What people said stands between quotation marks, in both languages."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.text.languages import LANGUAGES, Catalogue, Language, nest_quotations, quote, shorten


@pytest.mark.parametrize(
    ("words", "quotation"),
    [
        ("my desk is in room 4", "“my desk is in room 4”"),
        ("我的工位在 4 号房间", "“我的工位在 4 号房间”"),
        ("the room is called “Blue”", "“the room is called ‘Blue’”"),
        ('the room is called "Blue"', "“the room is called ‘Blue’”"),
        ("会议室叫“蓝”", "“会议室叫‘蓝’”"),
        ('a 5" screen', '“a 5" screen”'),
        ("two\nlines", "“two lines”"),
    ],
)
def test_quotations_within_a_quotation_get_the_inner_marks(words: str, quotation: str) -> None:
    assert quote(words) == quotation


def test_long_words_end_with_an_ellipsis_within_the_marks() -> None:
    assert quote("one two three", 8) == "“one two…”"
    assert quote("一二三四五", 4) == "“一二三…”"


@given(st.text(), st.integers(1, 50))
def test_no_quotation_ends_before_its_mark(words: str, most: int) -> None:
    quotation = quote(words, most)
    assert quotation.startswith("“")
    assert quotation.find("”") == len(quotation) - 1
    assert len(shorten(words, most)) <= most


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_nests_what_its_fields_quote(tmp_path: Path, language: Language) -> None:
    head = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    path = tmp_path / f"texts.{language}.po"
    path.write_text(head + 'msgid "told"\nmsgstr "“{words}” {words}"\n', encoding="utf-8")
    told = Catalogue(str(tmp_path / "texts.py")).say("told", language, words="the “Blue” room")
    assert told == "“the ‘Blue’ room” the “Blue” room"
    assert nest_quotations(told) == "‘the ‘Blue’ room’ the ‘Blue’ room"
