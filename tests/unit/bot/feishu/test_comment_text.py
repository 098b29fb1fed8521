"""What is said in comments: elements as text, and answers as elements that mention who asked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.feishu.other_events import (
    LONGEST,
    MOST_REPLIES,
    CommentReply,
    elements_of,
    is_said,
    mentioned_in,
    plain_text,
    replies_of,
    reply_text,
)
from tests.support.rows import every_row

BOB, MEMO = "ou_b0b", "ou_mem0"
NAMES = {BOB: "Bob", MEMO: "Memo"}


def reply(*elements):
    return CommentReply("71", BOB, 0, elements)


def run(text):
    return {"type": "text_run", "text_run": {"text": text}}


def person(open_id):
    return {"type": "person", "person": {"user_id": open_id}}


def test_a_reply_reads_as_people_see_it_without_the_mention_of_the_bot():
    link = {"type": "docs_link", "docs_link": {"url": "https://a.feishu.cn/docx/x"}}
    said = reply(person(MEMO), run(" is it as "), person(BOB), run(" says in "), link)
    assert (
        reply_text(said, NAMES, without=MEMO) == "is it as @Bob says in https://a.feishu.cn/docx/x"
    )
    assert mentioned_in(said) == (MEMO, BOB)


def test_empty_fields_of_other_kinds_are_no_mentions():
    said = reply(
        {"text_run": {"text": "hi"}, "docs_link": {"url": None}, "person": {"user_id": None}}
    )
    assert (reply_text(said, NAMES), mentioned_in(said)) == ("hi", ())


def test_an_answer_mentions_who_asked_and_is_kept_as_it_is_sent():
    (kept,) = replies_of("It is on **3 March**.", BOB, note="(more)")
    assert kept == f"<at id={BOB}></at> It is on 3 March."
    assert elements_of(kept) == [person(BOB), run(" It is on 3 March.")]


def test_tags_in_an_answer_mention_nobody():
    text = f"<at id={MEMO}></at> and <at id=all></at> and @Bob"
    (kept,) = replies_of(text, BOB, note="(more)")
    people = [one["person"]["user_id"] for one in elements_of(kept) if one["type"] == "person"]
    assert people == [BOB]
    continued = replies_of("x" * LONGEST + f"<at id={MEMO}></at>", BOB, note="")[1:]
    assert all(one["type"] == "text_run" for kept in continued for one in elements_of(kept[:1]))


def test_a_long_answer_is_parted_where_words_end_and_then_shortened_honestly():
    words = "A sentence of words. " * 2000
    kept = replies_of(words, BOB, note="(The rest is left out.)")
    assert len(kept) == MOST_REPLIES
    assert all(len(one) <= LONGEST + 40 for one in kept)
    assert kept[0].endswith("words.")
    assert kept[-1].endswith("(The rest is left out.)")
    assert "left out" not in "".join(replies_of("short", BOB, note="(The rest is left out.)"))


@every_row(
    ("markdown", "text"),
    [
        ("# Plan\n\n**Bold** and *thin*", "Plan\n\nBold and thin"),
        ("`code` and [a link](https://x.cn)", "code and a link (https://x.cn)"),
        ("```py\nx = 1\n```", "x = 1"),
        ("- 2 * 3 * 4 = 24", "- 2 * 3 * 4 = 24"),
        ("snake_case_stays", "snake_case_stays"),
    ],
)
def test_marks_of_markdown_are_not_shown(markdown, text):
    assert plain_text(markdown) == text


@given(st.text(min_size=1, max_size=300))
def test_what_was_sent_is_recognised_when_it_is_read_back(text):
    for kept in replies_of(text, BOB, note="…"):
        back = reply(*elements_of(kept))
        assert is_said(back, kept)
        assert not is_said(back, f"{kept} and more")
    people = [one for one in elements_of(kept) if one["type"] == "person"]
    assert [one["person"]["user_id"] for one in people] in ([BOB], [])
