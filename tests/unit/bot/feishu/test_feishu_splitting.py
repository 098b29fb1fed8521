"""Pieces that Feishu accepts hold every word, and simpler text is made when it refuses."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.feishu.cards import answer_card
from bot.feishu.drawable_markdown import encoded_size, simpler_markdown, split_markdown
from bot.feishu.errors import FeishuError
from bot.feishu.markup import at_tag, card_markdown
from tests.support.cards import card_bytes
from tests.support.rows import every_row

TABLE = "| a | b |\n| --- | :-: |\n| 1 | 2 |\n"
AT = at_tag("ou_84aad35d084aa403a838cf73ee18467")

words = st.sampled_from(
    ["word", "字", "😀", "👩\u200d👩\u200d👧", "🇨🇳", "e\u0301", AT, "&#60;", "x" * 90]
)
signs = st.sampled_from(['"', "\\", "\n", "\n\n", " ", "|", "\t", "\r\n"])
blocks = st.sampled_from(["```py\n", "```\n", "~~~\n", TABLE, "- item\n", "# T\n"])
pieces_of_text = st.lists(words | signs | blocks, max_size=80).map("".join)


def refused(sub_code: int | None) -> FeishuError:
    return FeishuError(230099, sub_code=sub_code)


def is_subsequence(wanted: str, given_text: str) -> bool:
    letters = iter(given_text)
    return all(letter in letters for letter in wanted)


def tables_in(markdown: str) -> int:
    return len(re.findall(r"(?m)^.*\|.*\n[ \t]*\|?[ \t]*:?-", markdown))


@given(st.text(max_size=80))
def test_the_size_is_that_of_json_in_json(text):
    text = text.encode("utf-8", "replace").decode()
    once = json.dumps(text, ensure_ascii=False)[1:-1]
    twice = json.dumps(once, ensure_ascii=False)[1:-1]
    assert encoded_size(text) == len(twice.encode())


@given(pieces_of_text)
def test_text_that_fits_comes_back_as_it_is(text):
    assert split_markdown(text, max_tables=1000) == [text]


@given(pieces_of_text, st.integers(400, 900), st.integers(1, 3))
def test_pieces_fit_and_keep_every_word(text, max_bytes, max_tables):
    pieces = split_markdown(text, max_bytes, max_tables)
    assert all(encoded_size(piece) <= max_bytes for piece in pieces)
    assert is_subsequence("".join(text.split()), "".join("".join(pieces).split()))


@given(pieces_of_text, st.integers(400, 900))
def test_a_mention_is_never_cut(text, max_bytes):
    joined = "".join(split_markdown(text, max_bytes))
    whole = "\n".join(split_markdown(text, max_bytes))
    assert whole.count(AT) == joined.count(AT) >= text.count(AT)


@given(st.text(st.sampled_from("ab \n字"), max_size=1500), st.integers(400, 600))
def test_prose_is_cut_without_adding_or_losing_anything_but_space(text, max_bytes):
    joined = "".join(split_markdown(text, max_bytes))
    assert "".join(joined.split()) == "".join(text.split())


def test_paragraphs_are_kept_together_where_they_fit():
    paragraphs = [f"{n} " + "w" * 150 for n in range(6)]
    pieces = split_markdown("\n\n".join(paragraphs), 400)
    assert pieces == ["\n\n".join(paragraphs[n : n + 2]) for n in (0, 2, 4)]


def test_a_cut_fence_is_closed_and_opened_again():
    code = "".join(f"line {number}\n" for number in range(100))
    pieces = split_markdown(f"before\n\n```python\n{code}```\nafter", 400)
    assert len(pieces) > 2
    assert all(piece.count("```") % 2 == 0 for piece in pieces)
    assert sum("```python\n" in piece for piece in pieces) >= 3
    assert pieces[-1].endswith("```\nafter")


def test_a_cut_table_repeats_its_header():
    rows = "".join(f"| {number} | x |\n" for number in range(100))
    pieces = split_markdown(f"| n | v |\n|---|---|\n{rows}", 400)
    assert len(pieces) > 2
    assert all(piece.startswith("| n | v |\n|---|---|\n| ") for piece in pieces)


def test_more_tables_than_allowed_go_to_the_next_piece():
    pieces = split_markdown("\n".join([TABLE] * 7), max_tables=3)
    assert [tables_in(piece) for piece in pieces] == [3, 3, 1]


def test_a_table_in_a_fence_is_no_table():
    text = f"```\n{TABLE}```\n" * 9
    assert split_markdown(text, max_tables=1) == [text]


def test_a_cjk_answer_is_counted_in_bytes_and_its_cards_stay_below_thirty_kilobytes():
    text = card_markdown('他说"好"，<b>\\n\n' * 4000)
    pieces = split_markdown(text)
    assert len(pieces) > 5
    assert all(card_bytes(answer_card(piece)) < 22_000 for piece in pieces)


def test_a_limit_that_nothing_fits_into_is_refused():
    with pytest.raises(ValueError, match="at least"):
        split_markdown("x", 10)


def test_blank_text_is_one_empty_piece_at_most():
    assert split_markdown("") == [""]
    assert split_markdown("\n" * 5000, 400) == [""]


def test_too_many_tables_become_code():
    simpler = simpler_markdown(f"intro\n\n{TABLE}\n{AT} end", refused(11310))
    assert simpler == f"intro\n\n```\n{TABLE}```\n\n{AT} end"


def test_people_who_left_become_names():
    assert simpler_markdown(f"{AT} hi", refused(100290), {AT[7:-6]: "Bo<b>"}) == "@Bo&#60;b> hi"
    assert simpler_markdown(f"{AT} hi", refused(100290)) == " hi"


def test_images_that_feishu_refuses_become_links():
    assert simpler_markdown("![a](http://x/y.png)", refused(200570)) == "[a](http://x/y.png)"


@every_row("sub_code", [11310, 100290, 200570, 200621, None])
def test_text_that_cannot_be_made_simpler_gives_nothing(sub_code):
    assert simpler_markdown("plain **text**", refused(sub_code)) is None


def test_tables_that_follow_each_other_without_a_line_between_count_each() -> None:
    pieces = split_markdown("| a |\n|---|\n| b |\n" * 5)
    assert [piece.count("|---|") for piece in pieces] == [3, 2]
