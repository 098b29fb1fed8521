"""When the answer may lie before the window."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from memory.recall.passages import content_words, needs_recall, recall_at_once, usual_scope
from memory.scope import memory_context
from tests.support.rows import every_row

NOW = datetime(2026, 11, 21, 14, tzinfo=ZoneInfo("Asia/Shanghai"))
WINDOW = ["我们在讨论季度预算和招聘计划", "The launch is planned for 3 March, the venue is booked."]


@every_row(
    "question",
    [
        "上次你推荐的书叫什么？",
        "还记得我喜欢什么颜色吗",
        "我之前说过预算是多少？",
        "你告诉过我哪些招聘计划？",
        "我曾经和你分享过预算",
        "What did I say about the launch?",
        "Do you remember the venue?",
        "When did we book the venue?",
        "You recommended a venue, which one?",
    ],
)
def test_a_question_about_the_past_needs_recall(question: str) -> None:
    assert needs_recall(question, WINDOW)


def test_a_past_day_needs_recall_when_the_time_is_known() -> None:
    assert needs_recall("上周三的预算", WINDOW, NOW)
    assert not needs_recall("今天的预算", WINDOW, NOW)


@every_row("question", ["我的护照号码是多少？", "Which shellfish am I allergic to?"])
def test_words_that_the_window_lacks_need_recall(question: str) -> None:
    assert needs_recall(question, WINDOW)


@every_row("question", ["季度预算怎么样？", "Is the venue for the launch booked?"])
def test_words_that_stand_in_the_window_do_not(question: str) -> None:
    assert not needs_recall(question, WINDOW)


@every_row(
    "question",
    [
        "好的，谢谢",
        "为什么？",
        "ok, thanks",
        "?",
        "",
        "早上好！",
        "你好呀",
        "Good morning!",
        "hey, bye",
    ],
)
def test_a_question_without_matter_of_its_own_does_not(question: str) -> None:
    assert not needs_recall(question, WINDOW)


def test_content_words_leave_out_what_every_question_has() -> None:
    assert content_words("请问你可以帮我看一下季度预算吗？") >= {"季度", "度预", "预算"}
    assert content_words("Could you please tell me about the Budget") == {"budget"}


def test_where_nobody_else_reads_the_answer_everything_is_searched() -> None:
    def scope(**kind: str) -> str:
        return usual_scope(
            memory_context(chat_id="oc", root="main", subject="a", actor="a", **kind)
        )  # type: ignore[arg-type]

    assert scope(chat_type="p2p") == "everywhere"
    assert scope(chat_type="group") == scope() == "chat"


@every_row("question", ["季度预算怎么样？", "Is the venue for the launch booked?"])
def test_in_a_fresh_thread_every_question_with_matter_is_searched_for(question: str) -> None:
    assert needs_recall(question, [])


def test_recall_at_once_names_the_words_that_decide_it_where_nobody_else_speaks() -> None:
    def words(question: str, chat_type: str = "p2p") -> object:
        who = memory_context(
            chat_id="oc", root="main", subject="ou", actor="ou",
            chat_type=chat_type,  # type: ignore[arg-type]
        )  # fmt: skip
        asked = recall_at_once(who, question, now=NOW, k=5)
        return asked["words"] if asked else "nothing"

    assert words("Where is the launch?") == ["launch"]
    assert words("What did we say about it?") is None
    assert words("谢谢") == "nothing"
    assert words("Where is the launch?", "group") is None
    assert words("谢谢", "group") == "nothing"
