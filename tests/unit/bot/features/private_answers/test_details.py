"""The details of a text in one form, and which kind of them answers a question."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.features.private_answers.comparing import (
    details_in,
    has_new_detail,
    is_about_bot,
    names_within,
    needs_memory,
    nicknames,
    wanted_detail,
)
from tests.support.rows import every_row


@every_row(
    ("one", "other"),
    [
        ("at 16:00", "下午四点"),
        ("4 pm", "16:00"),
        ("on Monday", "周一"),
        ("14 May", "5月14号"),
        ("Q3", "三季度"),
        ("the 9th", "9号"),
        ("4,200 euros", "4200 欧元"),
        ("6.20 euros", "6,2 €"),
        ("138 0013 8000", "13800138000"),
    ],
)
def test_what_is_the_same_detail_has_one_form(one: str, other: str) -> None:
    assert details_in(one) == details_in(other) != frozenset()


@every_row(
    ("one", "other"),
    [
        ("16:00", "15:00"),
        ("Monday", "Tuesday"),
        ("Q3", "Q4"),
        ("第15个", "第14个"),
        ("B-112", "B-113"),
    ],
)
def test_other_details_are_others(one: str, other: str) -> None:
    assert details_in(one) != details_in(other)


@given(st.text())
def test_any_text_has_details_without_an_error(text: str) -> None:
    details_in(text)
    names_within(text)
    nicknames(text)


@every_row("character", ["a", "一", "1", "二", "@", "A", ".", "九百", "1,"])
def test_the_longest_answer_is_read_in_one_go(character: str) -> None:
    has_new_detail("time", "on Friday", character * 100_000, frozenset())
    has_new_detail("person", character * 4_000, character * 100_000, frozenset({"x"}))


@every_row(
    ("question", "kind"),
    [
        ("When is the demo?", "time"),
        ("演示是什么时候？", "time"),
        ("保洁一般几点来？", "time"),
        ("How many seats do we have?", "amount"),
        ("展会的预算还剩多少？", "amount"),
        ("Who leads the team?", "person"),
        ("团建都有谁去？", "person"),
        ("What is the door code?", "thing"),
        ("wifi密码？", "thing"),
    ],
)
def test_a_question_wants_a_kind_of_detail(question: str, kind: str) -> None:
    assert wanted_detail(question) == kind


def test_a_time_answers_when_and_a_known_one_does_not() -> None:
    assert has_new_detail("time", "moved to Thursday", "The demo is on Tuesday", frozenset())
    assert not has_new_detail("time", "on Tuesday at 16:00", "周二下午四点", frozenset())
    assert not has_new_detail("time", "I am nervous", "", frozenset({"nervou"}))


def test_who_is_answered_by_a_name() -> None:
    assert has_new_detail("person", "Olga does", "who does it?", frozenset({"olga"}))
    assert has_new_detail("person", "由欧阳审批", "谁来批？", frozenset())
    assert not has_new_detail("person", "I do not like it", "who does it?", frozenset({"like"}))


def test_names_are_told_from_the_beginnings_of_sentences() -> None:
    assert names_within("Which flight does Nina take to Oslo?") == {"nina", "oslo"}
    assert names_within("When does it start?") == frozenset()
    assert names_within("Deskpro 的授权码是什么？") == {"deskpro"}
    assert names_within("Who signs NDAs?") == {"nda"}
    assert nicknames("老周和王总来吗，大家小心") == {"老周", "王总"}


def test_how_much_is_answered_by_a_number_that_is_no_time() -> None:
    assert has_new_detail("amount", "12 of them", "how many?", frozenset())
    assert not has_new_detail("amount", "at 17:42 on Friday", "how many?", frozenset())


def test_where_is_answered_by_a_place() -> None:
    assert has_new_detail("place", "in the basement", "where?", frozenset({"basement"}))
    assert not has_new_detail(
        "place", "that ladder is dangerous", "where?", frozenset({"dangerou"})
    )


def test_a_question_may_be_about_the_bot() -> None:
    assert is_about_bot("how was your weekend?")
    assert is_about_bot("你会累吗？")
    assert not is_about_bot("Do we have a discount code?")


def test_what_is_to_be_made_is_not_looked_for() -> None:
    assert not needs_memory("Can you translate “see you soon” into French?")
    assert not needs_memory("给公众号起个好名字？")
    assert not needs_memory("What is 15 % of 240?")
    assert not needs_memory("KPI 是什么的缩写？")
    assert needs_memory("Did Paul say when the translation is ready?")
    assert needs_memory("What is the name of the new CFO?")
