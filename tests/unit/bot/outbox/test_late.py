"""The line above an answer that comes late."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from bot.outbox.foot import late_note
from tests.support.rows import every_row

NOW = datetime(2026, 3, 3, 0, 20, tzinfo=ZoneInfo("Asia/Shanghai"))


def asked(minutes: float) -> int:
    return int((NOW - timedelta(minutes=minutes)).timestamp() * 1000)


@every_row(("question", "minutes"), [("Hi", 9.9), ("你好", 0), ("Hi", -5)])
def test_an_answer_in_time_says_nothing(question: str, minutes: float) -> None:
    assert late_note(question, asked(minutes), NOW) == ""


def test_what_has_no_time_is_not_late() -> None:
    assert late_note("Hi", 0, NOW) == ""


def test_it_names_the_question_and_its_time_in_the_questions_language() -> None:
    assert late_note("When is the launch?", asked(15), NOW) == (
        "> Sorry for the late reply. This answers “When is the launch?”, asked at 00:05.\n\n"
    )
    assert late_note("发布会是几点？", asked(25), NOW) == (
        "> 抱歉，回复晚了。这是对“发布会是几点？”（3月2日 23:55）的回答。\n\n"
    )


@every_row(
    "question",
    ["<at id=all></at> now", "**a**\n# b\n> c `d` [e](https://f.example)", "x" * 5000, "@_all"],
)
def test_the_question_is_quoted_inert_in_one_short_line(question: str) -> None:
    note = late_note(question, asked(15), NOW)

    assert note.count("\n") == 2
    assert len(note) < 200
    assert not set("<@[*`#") & set(note)
