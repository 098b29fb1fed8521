"""A later statement of a matter replaces the earlier one, and nothing else does."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from memory.recall.changes import replacement_times
from memory.recall.passages import Passage
from tests.support.rows import every_row

PAIRS = Path(__file__).parents[3] / "data" / "recall" / "changes.jsonl"


def pairs(*, mark: bool) -> list[tuple[str, str]]:
    read = map(json.loads, PAIRS.read_text(encoding="utf-8").splitlines())
    return [(pair["first"], pair["then"]) for pair in read if pair["mark"] is mark]


def said(number: int, text: str, *, by: str = "ou_a", chat: str = "oc_1") -> Passage:
    return Passage(
        turn_id=f"om_{number}",
        message_id=number,
        conversation_id=f"feishu:{chat}:main",
        chat_id=chat,
        asked_at=f"2026-05-0{number}T04:00:00+00:00",
        actor_id=by,
        actor_name="",
        question=text,
        answer="ok",
    )


@every_row(
    ("earlier", "later"),
    [
        ("The weekly meeting is on Friday", "The weekly meeting has moved to Monday."),
        ("My dentist is Doctor Okafor", "Update: my dentist is now Doctor Lee"),
        ("Our courier is Swiftline, call 555-0142", "Actually our courier is now Northbird"),
        ("The insurer is Baltia", "Our insurer is Fjordan now"),
        ("The lead is Piet", "The lead is Uma now"),
        ("周会是周五上午十点", "周会改到周三下午"),
        ("我的健身卡号是7731", "更正：我的健身卡号现在是9920"),
        ("发布会定在十一月二十八日", "发布会推迟到十二月三日"),
        ("财务联系人是周敏", "财务联系人换成李雷了"),
    ],
)
def test_a_later_statement_of_a_matter_replaces_the_earlier(earlier: str, later: str) -> None:
    marks = replacement_times([said(1, earlier), said(2, later)])

    assert marks == {"om_1": said(2, later).asked_at, "om_2": ""}


@every_row(
    ("earlier", "later"),
    [
        ("The budget is 4,300 euros", "The venue is Harbour House"),
        ("The launch is on 2 May", "The launch has moved to 9 May if QA signs off"),
        ("The lead is Piet", "The lead is late now"),
        ("The lead is Piet", "The owner is Uma now"),
        ("My car is red", "My car insurance is Northern Star"),
        ("The weekly meeting is on Friday", "Is the weekly meeting on Monday?"),
        ("The weekly meeting is on Friday", "the weekly meeting is on friday."),
        ("It is raining", "It is late"),
        ("周会是周五", "月会是周三"),
        ("周会是周五", "周会是周三吗？"),
        ("这个是红的", "这个是蓝的"),
        ("tell a joke about penguins", "随便说一句鼓励大家"),
    ],
)
def test_what_is_of_another_matter_or_only_asked_replaces_nothing(earlier: str, later: str) -> None:
    assert replacement_times([said(1, earlier), said(2, later)]) == {}


@every_row(("earlier", "later"), pairs(mark=True))
def test_a_change_is_marked(earlier: str, later: str) -> None:
    assert replacement_times([said(1, earlier), said(2, later)]).get("om_1")


@every_row(("earlier", "later"), pairs(mark=False))
def test_another_matter_is_not_marked(earlier: str, later: str) -> None:
    assert replacement_times([said(1, earlier), said(2, later)]) == {}


def test_without_a_word_of_change_both_of_two_peoples_statements_hold() -> None:
    order = said(1, "The order is 300 chairs")

    assert replacement_times([order, said(2, "The order is 320 chairs", by="ou_b")]) == {}
    assert "om_1" in replacement_times([order, said(2, "The order is now 320 chairs", by="ou_b")])


def test_a_value_that_is_stated_again_holds_again() -> None:
    turns = ["Stand-up is at 9:15", "Stand-up is at 9:45", "Stand-up is back to 9:15"]

    marks = replacement_times([said(n, text) for n, text in enumerate(turns, 1)])

    assert marks == {"om_2": said(3, "").asked_at, "om_3": ""}


@every_row(
    ("earlier", "correction"),
    [("The launch is on 3 March", "no, it is now 14 March"), ("交接在3月3号", "不对，是3月12号")],
)
def test_a_correction_without_a_subject_replaces_what_was_said_just_before(
    earlier: str, correction: str
) -> None:
    assert "om_1" in replacement_times([said(1, earlier), said(2, correction)])
    others = [said(2, "The venue is Lake Hall"), said(3, "Our caterer is Green Fork")]
    assert "om_1" not in replacement_times([said(1, earlier), *others, said(4, correction)])


def test_what_is_ones_own_is_not_replaced_by_another_person() -> None:
    mine, theirs = said(1, "我的工位在四楼"), said(2, "我的工位在二楼", by="ou_b")

    assert replacement_times([mine, theirs]) == {}


def test_what_is_nobodys_own_is_replaced_by_anybody_there_and_not_elsewhere() -> None:
    was = said(1, "The venue is Harbour House")
    is_now = said(2, "The venue is now Lake Hall", by="ou_b")

    assert set(replacement_times([was, is_now])) == {"om_1", "om_2"}
    assert replacement_times([was, said(2, "The venue is Lake Hall", chat="oc_2")]) == {}


def test_of_three_each_ends_with_the_newest_and_only_that_holds() -> None:
    marks = replacement_times(
        [said(1, "周会是周一"), said(2, "周会改到周二"), said(3, "周会改到周三")]
    )

    assert [turn for turn, until in marks.items() if not until] == ["om_3"]
    assert set(marks) == {"om_1", "om_2", "om_3"}


def test_a_turn_that_also_states_what_still_holds_is_not_marked_as_earlier() -> None:
    both = said(1, "周会是周五。食堂是在三楼。")

    assert replacement_times([both, said(2, "周会改到周三")]) == {"om_2": ""}


@given(st.lists(st.text(max_size=60), max_size=4))
def test_any_text_is_read(texts: list[str]) -> None:
    replacement_times([said(n, text) for n, text in enumerate(texts, 1)])
