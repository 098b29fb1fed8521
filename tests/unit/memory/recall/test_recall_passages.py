"""What is asked of the memory, and how its hits read."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from memory.recall.passages import Passage, passages, recall_params
from memory.recall.selection import RenderedPassages, excerpt, render_passages, snippet
from memory.scope import memory_context
from tests.support.rows import every_row

SHANGHAI = ZoneInfo("Asia/Shanghai")
NOW = datetime(2026, 11, 21, 14, tzinfo=SHANGHAI)
HERE = memory_context(chat_id="oc_1", root="om_1", subject="ou_a", actor="ou_a", tenant_key="t")
ROW = {
    "turn_id": "om_2",
    "message_id": 7,
    "conversation_id": "feishu:oc_1:om_1",
    "chat_id": "oc_1",
    "asked_at": "2026-05-04T04:00:00+00:00",
    "actor_id": "ou_a",
    "actor_name": "小明",
    "question": "我喜欢爵士乐",
    "answer": None,
    "before": "",
    "after": "",
    "score": 1.5,
}
PASSAGE = Passage(**{**ROW, "answer": "记住了"})  # type: ignore[arg-type]


def shown(*found: Passage, now: datetime = NOW, **names: str) -> list[str]:
    def label(open_id: str, name: str) -> str:
        return name or names.get(open_id, "someone")

    return render_passages(found, here=HERE, now=now, label=label, visible=str).text.splitlines()


def test_an_imported_message_is_a_line_of_its_author_and_marked() -> None:
    row = {**ROW, "turn_id": "import:om_9", "source": "import", "feishu_id": "om_9", "import_id": 4}
    (passage,) = passages([row])
    assert shown(passage) == ["[2026-05-04 12:00 · imported] 小明: 我喜欢爵士乐"]
    assert passage.ids == ("om_9", "import:4")
    elsewhere = replace(passage, chat_id="oc_2")
    assert shown(elsewhere)[0].startswith("[2026-05-04 12:00 · another chat · imported] 小明")


def test_a_date_in_the_question_puts_its_turns_first() -> None:
    params = recall_params(HERE, "5月4日我说了什么", now=NOW, scope="chat", k=3, before_id=9)

    assert params["p_boost"] == 1.0
    assert json.loads(str(params["p_spans"]))[0] == [
        "2026-05-04T00:00:00+08:00",
        "2026-05-05T00:00:00+08:00",
    ]
    assert (params["p_scope"], params["p_k"], params["p_before_id"]) == ("chat", 3, 9)
    assert (params["p_chat_id"], params["p_tenant_key"]) == ("oc_1", "t")


def test_a_date_in_english_moves_its_turns_up_by_half_as_much() -> None:
    assert recall_params(HERE, "What did I say on 4 May?", now=NOW)["p_boost"] == 0.5


def test_lately_only_tips_the_scales() -> None:
    assert recall_params(HERE, "最近我说了什么", now=NOW)["p_boost"] == 0.1


@every_row(
    ("question", "asked"),
    [
        ("Could you tell us what she'd said about the fair?", "what she'd the fair?"),
        ("What kind of music did I mention?", "What of music did ?"),
        ("我们的 iPhone 在哪？", "我们的 iPhone 在哪？"),
        ("Who are they?", "Who are ?"),
        ("you?", "you?"),
    ],
)
def test_words_that_tell_nothing_are_not_searched_for(question: str, asked: str) -> None:
    query = str(recall_params(HERE, question, now=NOW)["p_query"])

    assert query.split() == asked.split()


def test_a_question_without_a_date_has_no_span() -> None:
    assert recall_params(HERE, "我喜欢什么音乐", now=NOW)["p_spans"] == "[]"


def test_a_turn_without_an_answer_is_a_passage_too() -> None:
    (passage,) = passages([ROW])

    assert passage == replace(PASSAGE, answer="")


def test_each_line_says_when_and_by_whom() -> None:
    assert shown(PASSAGE) == [
        "[2026-05-04 12:00] 小明: 我喜欢爵士乐",
        "[you]: 记住了",
    ]


def test_only_another_chat_is_told() -> None:
    thread = replace(PASSAGE, conversation_id="feishu:oc_1:om_9", answer="")
    chat = replace(thread, conversation_id="feishu:oc_9:main", chat_id="oc_9")

    assert shown(thread) == ["[2026-05-04 12:00] 小明: 我喜欢爵士乐"]
    assert shown(chat) == ["[2026-05-04 12:00 · another chat] 小明: 我喜欢爵士乐"]


def test_after_midnight_in_shanghai_it_is_the_next_day_there_and_not_in_utc() -> None:
    late = replace(PASSAGE, asked_at="2026-05-03T16:30:00+00:00", answer="")

    assert shown(late) == ["[2026-05-04 00:30] 小明: 我喜欢爵士乐"]
    assert shown(late, now=NOW.astimezone(UTC)) == ["[2026-05-03 16:30] 小明: 我喜欢爵士乐"]


def test_passages_read_in_the_order_of_time() -> None:
    earlier = replace(PASSAGE, asked_at="2026-05-03T04:00:00+00:00", question="早", answer="")
    later = replace(PASSAGE, question="晚", answer="")

    assert [line[-1] for line in shown(later, earlier)] == ["早", "晚"]


def test_of_a_value_that_changed_each_line_says_whether_it_holds() -> None:
    was = replace(PASSAGE, turn_id="om_1", question="周会是周五", answer="")
    is_now = replace(
        PASSAGE, asked_at="2026-05-06T04:00:00+00:00", question="周会改到周三", answer=""
    )

    assert shown(is_now, was) == [
        "[2026-05-04 12:00 · earlier, until 2026-05-06 12:00] 小明: 周会是周五",
        "[2026-05-06 12:00 · current] 小明: 周会改到周三",
    ]


def test_a_name_that_was_not_stored_is_looked_up() -> None:
    nameless = replace(PASSAGE, actor_name="", answer="")

    assert "Ming: " in shown(nameless, ou_a="Ming")[0]
    assert "someone: " in shown(nameless)[0]


def test_no_passages_are_no_text() -> None:
    assert shown() == []


@given(st.text(), st.text(), st.text())
def test_what_people_wrote_stays_on_its_line(question: str, answer: str, name: str) -> None:
    passage = replace(PASSAGE, question=question, answer="x" + answer, actor_name=name)

    lines = shown(passage)

    assert len(lines) == 2
    assert lines[0].startswith("[2026-05-04 12:00] ")
    assert lines[1].startswith("[you]: ")


@given(st.text(), st.integers(min_value=1, max_value=50))
def test_a_line_is_never_longer_than_its_limit(text: str, limit: int) -> None:
    assert len(snippet(text, limit)) <= limit


def test_the_newest_line_is_worth_most_and_the_others_their_score() -> None:
    found = [
        replace(PASSAGE, turn_id="om_1", asked_at=f"2026-05-0{day}T04:00:00+00:00", score=score)
        for day, score in ((4, 1.0), (2, 3.0), (3, 2.0))
    ]

    read = render_passages(found, here=HERE, now=NOW, label=lambda *_: "Ann", visible=str)

    assert isinstance(read, RenderedPassages)
    assert read.worth == (3.0, 3.0, 2.0, 2.0, float("inf"), float("inf"))


def test_a_statement_of_the_window_that_replaces_a_recalled_one_stands_below_it() -> None:
    recalled = replace(PASSAGE, question="the deposit is 800 EUR", answer="")
    newer, on_another = (
        replace(
            PASSAGE, turn_id=id, asked_at=f"2026-05-05T0{n}:00:00+00:00", question=text, answer=""
        )
        for n, id, text in (
            (4, "om_8", "the deposit is 950 EUR now"),
            (5, "om_9", "the rent is 700 EUR now"),
        )
    )

    read = render_passages(
        [recalled], here=HERE, now=NOW, label=lambda *_: "Ann", visible=str,
        window=[newer, on_another],
    )  # fmt: skip

    assert read.text.splitlines() == [
        "[2026-05-04 12:00 · earlier, until 2026-05-05 12:00] Ann: the deposit is 800 EUR",
        "[2026-05-05 12:00 · current] Ann: the deposit is 950 EUR now",
    ]
    assert read.found == (recalled,)


def test_of_a_long_answer_the_sentences_with_the_questions_words_are_told() -> None:
    filler = "This says nothing at all. " * 40
    answer = f"{filler}The landlord allows two cats. {filler}"
    passage = replace(PASSAGE, answer=answer)

    read = render_passages(
        [passage], here=HERE, now=NOW, label=lambda *_: "Ann", visible=str,
        question="How many cats does the landlord allow?",
    )  # fmt: skip

    assert "The landlord allows two cats." in read.text.splitlines()[1]


def test_of_a_long_chinese_text_too() -> None:
    text = "这里没有什么。" * 100 + "房东允许养两只猫。" + "后面也没有什么。" * 100

    assert "房东允许养两只猫。" in excerpt(text, ["房东", "养猫"], 120)


@given(st.text(), st.lists(st.text(min_size=1)), st.integers(min_value=3, max_value=60))
def test_an_excerpt_is_a_line_within_its_limit(text: str, words: list[str], limit: int) -> None:
    told = excerpt(text, words, limit)

    assert len(told) <= limit
    assert len(told.splitlines()) <= 1


@every_row(
    ("question", "searched"),
    [
        ("上个月谁负责发布的？", "谁负责发布的？"),
        ("who shipped 3.5 in February?", "who shipped 3.5 in February?"),
        ("上个月", "上个月"),
        ("最近谁值班", "最近谁值班"),
        ("who is on call?", "who is on call?"),
    ],
)
def test_a_date_is_no_word_that_is_searched_for_unless_it_is_the_only_one(
    question: str, searched: str
) -> None:
    asked = recall_params(HERE, question, now=NOW)["p_query"]
    assert str(asked).strip(" ?") == searched.strip(" ?")
